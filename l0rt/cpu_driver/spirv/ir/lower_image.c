/* SPDX-License-Identifier: Apache-2.0 */
/* lower_image.c: lowers images and samplers. A handle is a number of 64 bits, and a sampled image two of them.
 *
 * Coordinates and texels go through the lane's private memory, in one place for the whole kernel: each instruction
 * stores its coordinates there just before the access and loads its texel just behind. */
#include "spirv/ir/lower.h"

/* The word of the OpTypeImage of an image, or of a sampled image. */
static uint32_t image_type_at(lowering *l, const spirv_type *type) {
  const spirv_module *m = l->m;
  uint32_t id = type->id;
  if (m->ids[id].op == OpTypeSampledImage) id = m->words[m->ids[id].at + 2];
  if (m->ids[id].op != OpTypeImage) WRONG(l, "an operand is no image");
  uint32_t at = m->ids[id].at, dim = m->words[at + 3];
  if (dim > Dim3D && dim != DimBuffer) UNSUPPORTED(m, l->at, "images of dimension %u are not supported", dim);
  if (m->words[at + 6] != 0) UNSUPPORTED(m, l->at, "images of several samples are not supported");
  return at;
}

typedef struct {
  uint32_t handle, sampler; /* values; `sampler`: 0: none */
  uint32_t shape; /* as `imm` of IR_IMAGE */
  uint32_t coordinates;
} image;

static image image_of(lowering *l, uint32_t id) {
  const spirv_type *type;
  const uint32_t *values = lower_use(l, id, &type);
  uint32_t at = image_type_at(l, type), dim = l->m->words[at + 3];
  bool array = l->m->words[at + 5] != 0;
  image i = {.handle = values[0], .shape = dim | (array ? IMAGE_ARRAY : 0)};
  i.coordinates = (dim == DimBuffer ? 1 : dim + 1) + array;
  if (l->m->ids[type->id].op == OpTypeSampledImage && (i.sampler = values[1]) == 0)
    WRONG(l, "a sampled image that no OpSampledImage of this block makes");
  return i;
}

static void join(lowering *l, const uint32_t *w) {
  const spirv_type *image_type, *sampler_type, *type = spirv_type_of(l->m, l->at, w[1]);
  uint32_t *values = SPIRV_ARRAY(l->arena, uint32_t, 2);
  values[0] = lower_use(l, w[3], &image_type)[0];
  values[1] = lower_use(l, w[4], &sampler_type)[0];
  if (l->m->ids[type->id].op != OpTypeSampledImage || l->m->ids[image_type->id].op != OpTypeImage ||
      l->m->ids[sampler_type->id].op != OpTypeSampler)
    WRONG(l, "an image and a sampler make a sampled image");
  lower_define(l, w[2], values);
}

static void put(lowering *l, spirv_lane lane, uint32_t offset, uint32_t value) {
  ir_insn insn = {.op = IR_STORE, .lane = (uint8_t)lane, .a = l->image_place, .b = value, .imm = offset};
  insn.at = lower_place(l);
  ir_append(l->k, l->block, insn);
}

/* Coordinates are of 32 bits, as OpenCL C has them. */
static void put_coordinates(lowering *l, const image *i, uint32_t id, bool *integers) {
  const spirv_type *type;
  const uint32_t *values = lower_use(l, id, &type);
  const spirv_type *component = lower_component(type);
  *integers = component->kind == TYPE_INT;
  if (component->width != 32 || (component->kind != TYPE_INT && component->kind != TYPE_FLOAT))
    WRONG(l, "coordinates are integers or floats of 32 bits");
  if (type->components < i->coordinates) WRONG(l, "the image has %u coordinates", i->coordinates);
  if (l->image_place == 0) l->image_place = lower_private(l, IMAGE_BYTES, 16);
  for (uint32_t c = 0; c < i->coordinates; c++) put(l, spirv_type_lane(component), 4 * c, values[c]);
}

static void access_image(lowering *l, ir_image what, const image *i) {
  ir_append(l->k, l->block,
            (ir_insn){.op = IR_IMAGE,
                      .lane = LANE_I64,
                      .a = l->image_place,
                      .b = i->handle,
                      .c = what == IMAGE_READ || what == IMAGE_WRITE ? 0 : i->sampler,
                      .extra = what,
                      .imm = i->shape,
                      .at = lower_place(l)});
}

/* A texel has four channels, or one in the case of a depth image: the lane kinds of its channels in memory. Halves of
 * kernels are floats there. */
static const spirv_type *texel_component(lowering *l, const spirv_type *type) {
  const spirv_type *component = lower_component(type);
  bool number = component->kind == TYPE_INT ? component->width == 32
                                            : component->kind == TYPE_FLOAT && component->width <= 32;
  if (!number || (type->components != 4 && type->components != 1))
    WRONG(l, "a texel is one number, or a vector of four, of 32 bits or halves");
  return component;
}

static void get_texel(lowering *l, const uint32_t *w) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *component = texel_component(l, type);
  uint32_t *values = lower_list(l, type);
  spirv_lane to = spirv_type_lane(component), from = to == LANE_F16 ? LANE_F32 : to;
  for (uint32_t c = 0; c < type->components; c++) {
    ir_insn insn = {.op = IR_LOAD, .lane = (uint8_t)from, .a = l->image_place, .imm = IMAGE_TEXEL + 4 * c};
    values[c] = lower_convert(l, IR_CONVERT_F, from, to, lower_emit(l, insn, from));
  }
  lower_define(l, w[2], values);
}

static void put_texel(lowering *l, uint32_t id) {
  const spirv_type *type;
  const uint32_t *values = lower_use(l, id, &type);
  spirv_lane from = spirv_type_lane(texel_component(l, type)), to = from == LANE_F16 ? LANE_F32 : from;
  for (uint32_t c = 0; c < type->components; c++)
    put(l, to, IMAGE_TEXEL + 4 * c, lower_convert(l, IR_CONVERT_F, from, to, values[c]));
}

static uint32_t query(lowering *l, const image *i, ir_query what, spirv_lane lane) {
  ir_insn insn = {.op = IR_IMAGE_QUERY, .lane = LANE_I64, .a = i->handle, .extra = what};
  return lower_convert(l, IR_CONVERT_U, LANE_I32, lane, lower_emit(l, insn, LANE_I32));
}

static void get_size(lowering *l, const uint32_t *w) {
  image i = image_of(l, w[3]);
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *component = lower_component(type);
  if (component->kind != TYPE_INT || type->components != i.coordinates)
    WRONG(l, "the image's size has %u integers", i.coordinates);
  uint32_t *values = lower_list(l, type);
  for (uint32_t c = 0; c < i.coordinates; c++) {
    bool is_element = (i.shape & IMAGE_ARRAY) != 0 && c == i.coordinates - 1;
    values[c] = query(l, &i, is_element ? QUERY_ELEMENTS : (ir_query)c, spirv_type_lane(component));
  }
  lower_define(l, w[2], values);
}

static void get_number(lowering *l, const uint32_t *w, uint32_t op) {
  image i = image_of(l, w[3]);
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]);
  if (type->kind != TYPE_INT) WRONG(l, "the result is no integer");
  uint32_t *value = lower_list(l, type);
  spirv_lane lane = spirv_type_lane(type);
  value[0] = op == OpImageQueryOrder    ? query(l, &i, QUERY_ORDER, lane)
             : op == OpImageQueryFormat ? query(l, &i, QUERY_DATA_TYPE, lane)
                                        : lower_number(l, lane, 1); /* levels and samples */
  lower_define(l, w[2], value);
}

bool lower_image_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  (void)length;
  bool integers;
  switch (op) {
    case OpSampledImage: join(l, w); return true;
    case OpImage: {
      const spirv_type *type;
      uint32_t *value = SPIRV_ARRAY(l->arena, uint32_t, 2);
      value[0] = lower_use(l, w[3], &type)[0];
      image_type_at(l, type);
      lower_define(l, w[2], value);
      return true;
    }
    case OpImageSampleExplicitLod: {
      image i = image_of(l, w[3]);
      if (i.sampler == 0) WRONG(l, "the operand is no sampled image");
      put_coordinates(l, &i, w[4], &integers); /* images have one level: its number is not read */
      access_image(l, integers ? IMAGE_SAMPLE_INT : IMAGE_SAMPLE, &i);
      get_texel(l, w);
      return true;
    }
    case OpImageRead: {
      image i = image_of(l, w[3]);
      put_coordinates(l, &i, w[4], &integers);
      if (!integers) WRONG(l, "an image is read at integers");
      access_image(l, IMAGE_READ, &i);
      get_texel(l, w);
      return true;
    }
    case OpImageWrite: {
      image i = image_of(l, w[1]);
      put_coordinates(l, &i, w[2], &integers);
      if (!integers) WRONG(l, "an image is written at integers");
      put_texel(l, w[3]);
      access_image(l, IMAGE_WRITE, &i);
      return true;
    }
    case OpImageQuerySize:
    case OpImageQuerySizeLod: get_size(l, w); return true;
    case OpImageQueryFormat:
    case OpImageQueryOrder:
    case OpImageQueryLevels:
    case OpImageQuerySamples: get_number(l, w, op); return true;
    default: return false;
  }
}
