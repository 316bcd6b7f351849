/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: reading, sampling and writing images, by the rules of OpenCL C: chapter 8 of the specification of OpenCL for
 * coordinates and filters, and the conversion rules of its section 8.3. */
#include <math.h>
#include <string.h>

#include "spirv/run/half.h"
#include "spirv/run/kernel_memory.h"
#include "spirv/run/run.h"

typedef union {
  float f;
  uint32_t u;
  int32_t i;
} number;

typedef struct {
  number c[4];
} texel;

/* An image that a lane accesses, and where the host finds its texels. */
typedef struct {
  spirv_image image;
  uint64_t handle;
  uint64_t memory;
} view;

static bool is_float(const spirv_image *image) { return image->type >= SPIRV_TEXEL_UNORM; }

/* ---- Components -------------------------------------------------------------------------------------------------------- */

/* A float with an exponent of five bits and no sign: half's with fewer bits, which are at the top of a half's. */
static float small_float(uint32_t bits, uint32_t width) {
  uint32_t mantissa = width - 5, fraction = bits & ((1u << mantissa) - 1), exponent = bits >> mantissa & 31;
  number n;
  if (exponent == 31) n.u = 0x7f800000u | fraction << (23 - mantissa);
  else if (exponent != 0) n.u = (exponent + 112) << 23 | fraction << (23 - mantissa);
  else n.f = ldexpf((float)fraction, -14 - (int)mantissa);
  return n.f;
}

/* The nearest such float, ties to even; negative numbers become 0. A half is one of 15 bits and a sign. */
static uint32_t to_small_float(float x, uint32_t width) {
  uint32_t mantissa = width - 5, most = 31u << mantissa;
  if (isnan(x)) return most | 1u << (mantissa - 1);
  if (x <= 0) return 0;
  if (x >= 131072.0f) return most;
  int exponent = 0;
  frexpf(x, &exponent); /* x = 0.5 … 1 × 2^exponent */
  if (exponent < -13) exponent = -13; /* a denormal one */
  uint32_t steps = (uint32_t)rintf(ldexpf(x, (int)mantissa + 1 - exponent)); /* may be one too many: it carries */
  uint32_t bits = steps + ((uint32_t)(exponent + 13) << mantissa);
  return bits < most ? bits : most;
}

static float half_of(uint32_t bits) {
  float size = small_float(bits & 0x7fff, 15);
  return (bits & 0x8000) != 0 ? -size : size;
}

static uint32_t to_half(float x) { return (signbit(x) ? 0x8000u : 0) | to_small_float(fabsf(x), 15); }

/* The value of a component from its bits. */
static number value_of(const spirv_image *image, uint32_t bits, uint32_t width) {
  number n = {.u = bits};
  int32_t with_sign = (int32_t)(bits << (32 - width)) >> (32 - width);
  switch ((spirv_texel)image->type) {
    case SPIRV_TEXEL_UINT: break;
    case SPIRV_TEXEL_SINT: n.i = with_sign; break;
    case SPIRV_TEXEL_UNORM: n.f = (float)((double)bits / (double)(UINT32_MAX >> (32 - width))); break;
    case SPIRV_TEXEL_SNORM: n.f = (float)fmax(-1.0, (double)with_sign / (double)(INT32_MAX >> (32 - width))); break;
    case SPIRV_TEXEL_FLOAT:
      if (width == 16) n.f = half_of(bits);
      else if (width < 16) n.f = small_float(bits, width);
      break;
  }
  return n;
}

/* An integer of a float, rounded to the nearest even one and saturated; NaN is 0. The product is one of floats. */
static int64_t scaled(float x, float scale, double least, double most) {
  float product = x * scale;
  if (isnan(product)) return 0;
  double whole = rint((double)product);
  return (int64_t)(whole < least ? least : whole > most ? most : whole);
}

static uint32_t bits_of(const spirv_image *image, number n, uint32_t width) {
  uint32_t most = UINT32_MAX >> (32 - width);
  int32_t top = (int32_t)(most >> 1), bottom = -top - 1;
  switch ((spirv_texel)image->type) {
    case SPIRV_TEXEL_UINT: return n.u < most ? n.u : most;
    case SPIRV_TEXEL_SINT: return (uint32_t)(n.i < bottom ? bottom : n.i > top ? top : n.i);
    case SPIRV_TEXEL_UNORM: return (uint32_t)scaled(n.f, (float)most, 0, most);
    case SPIRV_TEXEL_SNORM: return (uint32_t)scaled(n.f, (float)top, bottom, top);
    default: return width == 32 ? n.u : width == 16 ? to_half(n.f) : to_small_float(n.f, width);
  }
}

/* ---- Texels ------------------------------------------------------------------------------------------------------------ */

/* Components of whole bytes are at multiples of them; others are in one number of at most 32 bits. */
static uint32_t component_bits(const spirv_image *image, const uint8_t *bytes, uint32_t c) {
  uint32_t width = image->bits[c], first = image->first_bit[c], all = 0;
  if (width % 8 == 0) {
    memcpy(&all, bytes + first / 8, width / 8);
    return all;
  }
  memcpy(&all, bytes, image->texel_size);
  return all >> first & ((1u << width) - 1);
}

static void set_component(const spirv_image *image, uint8_t *bytes, uint32_t c, uint32_t bits) {
  uint32_t width = image->bits[c], first = image->first_bit[c], all = 0;
  if (width % 8 == 0) {
    memcpy(bytes + first / 8, &bits, width / 8);
    return;
  }
  memcpy(&all, bytes, image->texel_size);
  all |= (bits & ((1u << width) - 1)) << first;
  memcpy(bytes, &all, image->texel_size);
}

/* What the channels show of components; the components that an image lacks are 0, and alpha 1. */
static texel channels_of(const spirv_image *image, const number components[4]) {
  texel t;
  number one = {.u = 1};
  if (is_float(image)) one.f = 1;
  for (int i = 0; i < 4; i++) {
    uint8_t channel = image->channels[i];
    t.c[i].u = 0;
    if (channel == SPIRV_CHANNEL_1 || (channel == SPIRV_CHANNEL_A && image->component_count < 4)) t.c[i] = one;
    else if (channel < image->component_count) t.c[i] = components[channel];
  }
  return t;
}

/* The color beyond the border: alpha is 1 where neither an alpha nor a component is shown as it. */
static texel border_of(const spirv_image *image) {
  texel t;
  memset(&t, 0, sizeof(t));
  bool alpha = image->channels[3] <= SPIRV_CHANNEL_A;
  for (int i = 0; i < 3; i++) alpha |= image->channels[i] == SPIRV_CHANNEL_A;
  if (!alpha && is_float(image)) t.c[3].f = 1;
  else if (!alpha) t.c[3].u = 1;
  return t;
}

/* The address of a texel; 0 if there is none at the coordinates. */
static uint64_t place_of(const spirv_image *image, const int32_t at[4]) {
  for (int d = 0; d < 3; d++)
    if ((uint32_t)at[d] >= image->extent[d]) return 0;
  if ((uint32_t)at[3] >= image->elements) return 0;
  uint64_t slice = (uint64_t)(image->array ? at[3] : at[2]);
  uint64_t offset = slice * image->slice_pitch + (uint64_t)at[1] * image->row_pitch +
                    (uint64_t)at[0] * image->texel_size;
  /* The description may be of an image that its program destroys meanwhile. */
  return offset > image->size || image->texel_size > image->size - offset ? 0 : image->address + offset;
}

static texel fetch(const view *v, const int32_t at[4]) {
  const spirv_image *image = &v->image;
  uint64_t place = place_of(image, at);
  if (place == 0) return border_of(image);
  uint8_t bytes[16];
  number components[4];
  KERNEL_READ_ALL(uint8_t, bytes, place - image->address + v->memory, image->texel_size);
  for (uint32_t c = 0; c < image->component_count; c++)
    components[c] = value_of(image, component_bits(image, bytes, c), image->bits[c]);
  return channels_of(image, components);
}

/* A component gets the first channel that shows it; one that none shows becomes 0. */
static void store(const view *v, uint64_t place, const texel *t) {
  const spirv_image *image = &v->image;
  uint8_t bytes[16] = {0};
  for (uint32_t c = 0; c < image->component_count; c++) {
    number n = {.u = 0};
    for (int i = 3; i >= 0; i--)
      if (image->channels[i] == c) n = t->c[i];
    set_component(image, bytes, c, bits_of(image, n, image->bits[c]));
  }
  KERNEL_WRITE_ALL(uint8_t, place - image->address + v->memory, bytes, image->texel_size);
}

/* ---- Coordinates ------------------------------------------------------------------------------------------------------- */

enum { FAR = 1 << 24 }; /* further than any image; NaN is as far */

static int32_t whole(float x) { return (int32_t)fmaxf(fminf(x, (float)FAR), (float)-FAR); }

static int32_t clamped(int32_t x, int32_t least, int32_t most) { return x < least ? least : x > most ? most : x; }

static int32_t addressed(uint32_t sampler, int32_t x, int32_t size) {
  switch (sampler & SPIRV_SAMPLER_ADDRESSING) {
    case SPIRV_SAMPLER_CLAMP_TO_EDGE:
    case SPIRV_SAMPLER_REPEAT:
    case SPIRV_SAMPLER_REPEAT_MIRRORED: return clamped(x, 0, size - 1);
    default: return clamped(x, -1, size); /* of no mode: what is beyond the image is not defined */
  }
}

/* The two texels of one dimension, and how far it is from the first to the second. */
typedef struct {
  int32_t near, next;
  float part;
} pair;

/* From a normalized coordinate, moved into the image. */
static float moved(uint32_t sampler, float s, float size) {
  if ((sampler & SPIRV_SAMPLER_ADDRESSING) == SPIRV_SAMPLER_REPEAT) return (s - floorf(s)) * size;
  if ((sampler & SPIRV_SAMPLER_ADDRESSING) == SPIRV_SAMPLER_REPEAT_MIRRORED)
    return fabsf(s - 2.0f * rintf(0.5f * s)) * size;
  return s * size;
}

static int32_t nearest(uint32_t sampler, float u, int32_t size) {
  int32_t x = whole(floorf(u));
  if ((sampler & SPIRV_SAMPLER_ADDRESSING) == SPIRV_SAMPLER_REPEAT && x > size - 1) x -= size;
  return addressed(sampler, x, size);
}

static pair linear(uint32_t sampler, float u, int32_t size) {
  float from = floorf(u - 0.5f);
  pair p = {.near = whole(from), .part = (u - 0.5f) - from};
  p.next = p.near + 1;
  if ((sampler & SPIRV_SAMPLER_ADDRESSING) == SPIRV_SAMPLER_REPEAT) {
    if (p.near < 0) p.near += size;
    if (p.next > size - 1) p.next -= size;
  }
  p.near = addressed(sampler, p.near, size);
  p.next = addressed(sampler, p.next, size);
  return p;
}

static int32_t element_of(const spirv_image *image, float x) {
  return clamped(whole(rintf(x)), 0, (int32_t)image->elements - 1);
}

static uint32_t dimensions(const spirv_image *image) { return image->dimension <= Dim3D ? image->dimension + 1u : 1; }

static texel sample(const view *v, uint32_t sampler, const number *coordinates) {
  const spirv_image *image = &v->image;
  uint32_t count = dimensions(image);
  bool is_linear = (sampler & SPIRV_SAMPLER_LINEAR) != 0 && is_float(image);
  int32_t at[4] = {0};
  pair pairs[3] = {{0}};
  if (image->array) at[3] = element_of(image, coordinates[count].f);
  for (uint32_t d = 0; d < count; d++) {
    int32_t size = (int32_t)image->extent[d];
    bool repeats = (sampler & SPIRV_SAMPLER_ADDRESSING) >= SPIRV_SAMPLER_REPEAT;
    float u = coordinates[d].f;
    if ((sampler & SPIRV_SAMPLER_NORMALIZED) != 0) u = moved(sampler, u, (float)size);
    else if (repeats) u = moved(sampler, u / (float)size, (float)size);
    if (is_linear) pairs[d] = linear(sampler, u, size);
    else at[d] = nearest(sampler, u, size);
  }
  if (!is_linear) return fetch(v, at);
  texel sum;
  memset(&sum, 0, sizeof(sum));
  for (uint32_t corner = 0; corner < 1u << count; corner++) {
    float weight = 1;
    for (uint32_t d = 0; d < count; d++) {
      bool next = (corner >> d & 1) != 0;
      at[d] = next ? pairs[d].next : pairs[d].near;
      weight *= next ? pairs[d].part : 1 - pairs[d].part;
    }
    texel t = fetch(v, at);
    for (int c = 0; c < 4; c++) sum.c[c].f += weight * t.c[c].f;
  }
  return sum;
}

/* At integers, which are not normalized, a sampler takes the texel there. */
static texel sample_at(const view *v, uint32_t sampler, const number *coordinates) {
  const spirv_image *image = &v->image;
  uint32_t count = dimensions(image);
  int32_t at[4] = {0};
  for (uint32_t d = 0; d < count; d++) at[d] = addressed(sampler, coordinates[d].i, (int32_t)image->extent[d]);
  if (image->array) at[3] = clamped(coordinates[count].i, 0, (int32_t)image->elements - 1);
  return fetch(v, at);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------- */

static bool find_image(const spirv_wave *w, uint64_t handle, spirv_image *image) {
  const spirv_memory *memory = &w->group->launch->memory;
  return memory->image != NULL && memory->image(memory->context, handle, image);
}

static bool fail(spirv_wave *w, const spirv_step *s, uint64_t address, bool writes, uint32_t lane) {
  if (w->group->status == SPIRV_OK) {
    w->group->failed_address = address;
    w->group->failed_write = writes;
  }
  spirv_fail(w, SPIRV_BAD_ACCESS, s->at, lane);
  return false;
}

/* Sets the view to the lane's image. It must be of the shape that the module declares. */
static bool look_at(spirv_wave *w, const spirv_step *s, view *v, uint64_t handle, uint32_t lane) {
  bool writes = s->extra == IMAGE_WRITE;
  if (handle == v->handle && handle != 0) return true;
  v->handle = 0;
  if (!find_image(w, handle, &v->image) || v->image.dimension != (s->imm & IMAGE_DIM) ||
      v->image.array != ((s->imm & IMAGE_ARRAY) != 0) || (writes && !v->image.writable))
    return fail(w, s, handle, writes, lane);
  if (!spirv_reach(w, s, v->image.address, v->image.size, writes, true, lane)) return false;
  v->memory = v->image.address + w->ranges[s->range].shift;
  v->handle = handle;
  return true;
}

static bool find_sampler(const spirv_wave *w, uint64_t handle, uint32_t *sampler) {
  const spirv_memory *memory = &w->group->launch->memory;
  *sampler = (uint32_t)handle;
  if (handle < 2 * SPIRV_SAMPLER_CONSTANT) return handle >= SPIRV_SAMPLER_CONSTANT;
  return memory->sampler != NULL && memory->sampler(memory->context, handle, sampler);
}

/* A read or a write, at integers; beyond the image there is nothing. */
static bool access_texel(spirv_wave *w, const spirv_step *s, const view *v, number *place, uint32_t lane) {
  const spirv_image *image = &v->image;
  uint32_t count = dimensions(image);
  int32_t at[4] = {0};
  for (uint32_t d = 0; d < count; d++) at[d] = place[d].i;
  if (image->array) at[3] = place[count].i;
  texel *t = (texel *)(place + IMAGE_TEXEL / sizeof(number));
  uint64_t address = place_of(image, at);
  if (address == 0) return fail(w, s, image->address + image->size, s->extra == IMAGE_WRITE, lane);
  if (s->extra == IMAGE_WRITE) store(v, address, t);
  else *t = fetch(v, at);
  return true;
}

void spirv_run_image(spirv_wave *w, const spirv_step *s, size_t lanes) {
  (void)lanes;
  const uint64_t *places = REGISTER(uint64_t, s->a), *images = REGISTER(uint64_t, s->b),
                 *samplers = REGISTER(uint64_t, s->c);
  view v = {.handle = 0};
  uint64_t last = 0;
  uint32_t sampler = 0;
  for (uint32_t k = 0; k < w->count && !w->failed; k++) {
    if (!spirv_runs(w, k)) continue;
    number *place = (number *)(uintptr_t)places[k]; /* the lane's own memory, which only this engine names */
    if (!look_at(w, s, &v, images[k], k)) return;
    if (s->extra == IMAGE_READ || s->extra == IMAGE_WRITE) {
      if (!access_texel(w, s, &v, place, k)) return;
      continue;
    }
    if (samplers[k] != last || last == 0) {
      if (!find_sampler(w, samplers[k], &sampler)) {
        fail(w, s, samplers[k], false, k);
        return;
      }
      last = samplers[k];
    }
    *(texel *)(place + IMAGE_TEXEL / sizeof(number)) = s->extra == IMAGE_SAMPLE_INT ? sample_at(&v, sampler, place)
                                                                                    : sample(&v, sampler, place);
  }
}

static uint32_t answer(const spirv_image *image, uint32_t what) {
  if (what == QUERY_ELEMENTS) return image->elements;
  if (what == QUERY_ORDER) return image->order;
  return what == QUERY_DATA_TYPE ? image->data_type : image->extent[what];
}

/* Of a handle that is none every answer is 0: lanes that do not run ask, too. */
void spirv_run_image_query(spirv_wave *w, const spirv_step *s, size_t lanes) {
  uint32_t *d = REGISTER(uint32_t, s->d);
  const uint64_t *images = REGISTER(uint64_t, s->a);
  spirv_image image;
  for (size_t k = 0; k < (s->scale != 0 ? lanes : 1); k++) {
    if (k != 0 && images[k] == images[k - 1]) d[k] = d[k - 1];
    else d[k] = find_image(w, images[k], &image) ? answer(&image, s->extra) : 0;
  }
}
