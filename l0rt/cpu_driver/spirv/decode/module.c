/* SPDX-License-Identifier: Apache-2.0 */
/* module.c: reads the words of a module, and checks the operands of each instruction before anything uses them. */
#include "spirv/decode/module.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "spirv/decode/instructions.h"

enum { MAGIC = 0x07230203, HEADER = 5, MAX_BOUND = 4 << 20 };
static const uint64_t MAX_STEPS = UINT64_C(1) << 28;

#define ROW(name, number, pattern) {number, pattern, #name},
static const spirv_instruction run[] = {SPIRV_INSTRUCTIONS(ROW)}, other[] = {SPIRV_OTHER_INSTRUCTIONS(ROW)};

/* The opcodes of a table are in ascending order. */
static const spirv_instruction *find(const spirv_instruction *table, size_t count, uint32_t opcode) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (table[middle].number == opcode) return &table[middle];
    if (table[middle].number < opcode) low = middle + 1;
    else high = middle;
  }
  return NULL;
}

const spirv_instruction *spirv_grammar(uint32_t opcode) {
  const spirv_instruction *instruction = find(run, sizeof(run) / sizeof(run[0]), opcode);
  return instruction != NULL ? instruction : find(other, sizeof(other) / sizeof(other[0]), opcode);
}

bool spirv_is_run(uint32_t opcode) { return find(run, sizeof(run) / sizeof(run[0]), opcode) != NULL; }

bool spirv_is_type(uint32_t opcode) {
  if (opcode <= OpTypeForwardPointer) return opcode >= OpTypeVoid;
  if (opcode <= OpSpecConstantOp) return false;
  const spirv_instruction *instruction = find(other, sizeof(other) / sizeof(other[0]), opcode);
  return instruction != NULL && strncmp(instruction->name, "Type", 4) == 0;
}

bool spirv_is_for_tools(const char *set) {
  static const char *const sets[] = {"OpenCL.DebugInfo.100", "DebugInfo", "SPIRV.debug"};
  for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
    if (strcmp(set, sets[i]) == 0) return true;
  return strncmp(set, "NonSemantic.", 12) == 0;
}

static bool is_capability(uint32_t number) {
  static const uint16_t ranges[][2] = {SPIRV_CAPABILITIES};
  for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
    if (number >= ranges[i][0] && number <= ranges[i][1]) return true;
  return false;
}

void spirv_spend(spirv_module *m, uint32_t at, uint64_t steps) {
  m->steps += steps;
  if (m->steps > MAX_STEPS) UNSUPPORTED(m, at, "the module takes too long to decode");
}

void spirv_entry_refuse(spirv_module *m, spirv_entry *entry, uint32_t at, const char *format, ...) {
  char text[160];
  if (entry->refusal != NULL) return;
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof(text), format, list);
  va_end(list);
  entry->refusal = spirv_copy_text(m->arena, text);
  entry->refusal_at = at;
}

static uint32_t string_words(spirv_module *m, uint32_t at, uint32_t word, uint32_t end) {
  const char *text = (const char *)(m->words + word);
  if (word >= end || memchr(text, 0, (end - word) * 4) == NULL) REFUSE(m, at, "a string without an end");
  return (uint32_t)(strlen(text) / 4 + 1);
}

static void check_id(spirv_module *m, uint32_t at, uint32_t id) {
  if (id == 0) REFUSE(m, at, "id 0 is no value and no type: ids begin at 1");
  if (id >= m->bound) REFUSE(m, at, "id %u is not below the bound %u", id, m->bound);
}

/* The words of the shortest instruction of a pattern. */
static uint32_t least_words(const char *pattern) {
  uint32_t words = 1;
  while (*pattern != '\0' && *pattern++ != '?') words++;
  return words;
}

/* Checks all operands of one instruction against its pattern, and records the id that it defines. */
static void check(spirv_module *m, uint32_t at) {
  uint32_t op = spirv_op(m, at), word = at + 1, end = at + spirv_length(m, at), type = 0, result = 0;
  const spirv_instruction *instruction = spirv_grammar(op);
  bool optional = false, text = false, shader = instruction != NULL && instruction->pattern[0] == '!';
  if (instruction == NULL || shader) {
    if (!m->build->trusted && shader)
      UNSUPPORTED(m, at, "there is no instruction %u for kernels: Op%s is for shaders", op, instruction->name);
    if (!m->build->trusted) REFUSE(m, at, "there is no instruction %u", op);
    m->loose = true;
    return;
  }
  for (const char *p = instruction->pattern; *p != '\0'; p++) {
    if (*p == '?') {
      optional = true;
      continue;
    }
    if (*p == '#') word = end;
    if (*p == '*')
      for (; word < end; word++) check_id(m, at, m->words[word]);
    if (*p == '#' || *p == '*' || (optional && word == end)) break;
    if (word == end)
      REFUSE(m, at, "Op%s has %u words, at least %u are needed", instruction->name, end - at,
             least_words(instruction->pattern));
    text = *p == 's';
    if (text) {
      word += string_words(m, at, word, end);
      continue;
    }
    if (*p != 'n') check_id(m, at, m->words[word]);
    if (*p == 'T') type = m->words[word];
    if (*p == 'R') result = m->words[word];
    word++;
  }
  m->has_lines |= op == OpLine;
  if (word != end && text) REFUSE(m, at, "Op%s has a string that ends before its instruction", instruction->name);
  if (word != end) REFUSE(m, at, "Op%s has %u words, which is too many", instruction->name, end - at);
  if (result == 0) return;
  spirv_id *id = &m->ids[result];
  if (id->at != 0) REFUSE(m, at, "id %u is made twice", result);
  id->at = at;
  id->op = (uint16_t)op;
  id->type = type;
}

static const char *text_at(const spirv_module *m, uint32_t word) { return (const char *)(m->words + word); }

static void decorate(spirv_module *m, uint32_t at, uint32_t target, uint32_t word) {
  spirv_id *id = &m->ids[target];
  uint32_t end = at + spirv_length(m, at), decoration = m->words[word];
  uint32_t first = word + 1 < end ? m->words[word + 1] : 0;
  bool has = word + 1 < end;
  switch (decoration) {
    case DecorationSpecId:
      id->has_spec_id = has;
      id->spec_id = first;
      break;
    case DecorationCPacked: id->packed = true; break;
    case DecorationBuiltIn: id->builtin = (int32_t)(first & 0xffff) + 1; break;
    case DecorationAlignment: id->alignment = first; break;
    case DecorationSaturated: id->saturated = true; break;
    case DecorationFuncParamAttr:
      id->by_value |= has && first == FuncParamByVal;
      id->no_write |= has && first == FuncParamNoWrite;
      break;
    case DecorationNonWritable: id->no_write = true; break;
    case DecorationNonReadable: id->no_read = true; break;
    case DecorationFPRoundingMode:
      if (first > RoundingRTN) REFUSE(m, at, "rounding mode %u is not known", first);
      id->rounding = (uint8_t)(first + 1);
      break;
    case DecorationLinkageAttributes: {
      uint32_t kind = word + 1 + string_words(m, at, word + 1, end);
      if (kind != end - 1 || m->words[kind] > LinkageLinkOnceODR)
        REFUSE(m, at, "a linkage without a name or a type that is known");
      id->linkage_name = text_at(m, word + 1);
      id->linkage = (uint8_t)(m->words[kind] + 1);
      break;
    }
    default: break; /* the others are hints */
  }
}

/* Applies the decorations of a group to each of its targets. */
static void decorate_group(spirv_module *m, uint32_t at, uint32_t before) {
  spirv_spend(m, at, before);
  for (uint32_t i = HEADER; i < before; i += spirv_length(m, i)) {
    if (spirv_op(m, i) != OpDecorate || m->words[i + 1] != m->words[at + 1]) continue;
    spirv_spend(m, at, spirv_length(m, at));
    for (uint32_t w = at + 2; w < at + spirv_length(m, at); w++) decorate(m, i, m->words[w], i + 2);
  }
}

static void entry_point(spirv_module *m, uint32_t at) {
  enum { KERNEL = 6 };
  if (m->words[at + 1] != KERNEL) UNSUPPORTED(m, at, "entry points must be kernels");
  m->entries = spirv_grow(m->arena, m->entries, m->entry_count, &m->entry_capacity, sizeof(spirv_entry));
  spirv_entry *entry = &m->entries[m->entry_count++];
  *entry = (spirv_entry){.function = m->words[at + 2], .at = at, .name = text_at(m, at + 3)};
}

/* Modes that change no result here: hints, promises of the kernel, and what the engine does anyway. */
static bool is_harmless(uint32_t mode) {
  static const uint16_t harmless[] = {
      ModeContractionOff,          ModeDenormPreserve,
      ModeSignedZeroPreserve,      ModeRoundingRTE,
      ModeMaxWorkgroupSizeINTEL,   ModeMaxWorkDimINTEL,
      ModeNoGlobalOffset,          ModeNumSIMDItemsINTEL,
      ModeSchedulerTargetMhzINTEL, ModeStreamingInterfaceINTEL,
      ModeRegisterMapINTEL,        ModeNamedBarriers,
      ModeMaximumRegistersINTEL,   ModeNamedMaximumRegistersINTEL,
      ModeFloatingPointIEEE,
  };
  for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
    if (harmless[i] == mode) return true;
  return false;
}

static void execution_mode(spirv_module *m, uint32_t at) {
  uint32_t length = spirv_length(m, at), mode = m->words[at + 2];
  bool has_entry = false;
  spirv_spend(m, at, m->entry_count);
  for (uint32_t e = 0; e < m->entry_count; e++) {
    spirv_entry *entry = &m->entries[e];
    if (entry->function != m->words[at + 1]) continue;
    has_entry = true;
    if (mode == ModeLocalSize) {
      if (length != 6) REFUSE(m, at, "LocalSize needs three numbers");
      memcpy(entry->group_size, m->words + at + 3, 12);
    } else if (mode == ModeLocalSizeHint) {
      if (length == 6) memcpy(entry->hinted_size, m->words + at + 3, 12);
    } else if (mode == ModeVecTypeHint) {
      if (length == 4) entry->hinted_vector = m->words[at + 3];
    } else if (mode == ModeSubgroupSize) {
      if (length != 4) REFUSE(m, at, "SubgroupSize needs a number");
      entry->subgroup_size = m->words[at + 3];
    } else if (mode == ModeLocalSizeId) {
      REFUSE(m, at, "LocalSizeId is a mode of OpExecutionModeId");
    } else if (!is_harmless(mode)) {
      spirv_entry_refuse(m, entry, at, "execution mode %u is not supported", mode);
    }
  }
  if (!has_entry) REFUSE(m, at, "an execution mode of %u, which is no entry point", m->words[at + 1]);
}

/* Sizes that are constants, mostly specialization constants. They are defined after the mode that names them. */
static void execution_mode_id(spirv_module *m, uint32_t at) {
  uint32_t length = spirv_length(m, at), mode = m->words[at + 2], sizes[3];
  bool hint = mode == ModeLocalSizeHintId;
  spirv_spend(m, at, m->entry_count);
  if (mode != ModeLocalSizeId && !hint) {
    for (uint32_t e = 0; e < m->entry_count; e++)
      if (m->entries[e].function == m->words[at + 1])
        spirv_entry_refuse(m, &m->entries[e], at, "execution mode %u is not supported", mode);
    return;
  }
  if (length != 6) REFUSE(m, at, "LocalSizeId needs three constants");
  for (int d = 0; d < 3; d++) {
    const spirv_value *value = spirv_constant_of(m, m->words[at + 3 + d]);
    if (value == NULL || value->type->kind != TYPE_INT) REFUSE(m, at, "LocalSizeId needs three constant integers");
    if (value->bits[0] == 0 || value->bits[0] > UINT32_MAX)
      REFUSE(m, at, "a local size of %llu", (unsigned long long)value->bits[0]);
    sizes[d] = (uint32_t)value->bits[0];
  }
  for (uint32_t e = 0; e < m->entry_count; e++)
    if (m->entries[e].function == m->words[at + 1])
      memcpy(hint ? m->entries[e].hinted_size : m->entries[e].group_size, sizes, sizeof(sizes));
}

/* Decodes what stands before the functions, in the order of the module, in which definitions come before uses. Returns
 * the word of the first function. */
static uint32_t declarations(spirv_module *m) {
  enum { STRUCT_CONTINUED = 6090, COMPOSITE_CONTINUED, SPEC_COMPOSITE_CONTINUED }; /* SPV_INTEL_long_composites */
  uint32_t at = HEADER;
  for (; at < m->count && spirv_op(m, at) != OpFunction; at += spirv_length(m, at)) {
    uint32_t op = spirv_op(m, at), *w = m->words + at;
    switch (op) {
      case OpName: m->ids[w[1]].name = text_at(m, at + 2); break;
      case OpString: m->ids[w[1]].text = text_at(m, at + 2); break;
      case OpExtInstImport:
        m->ids[w[1]].text = text_at(m, at + 2);
        if (strcmp(text_at(m, at + 2), "OpenCL.std") == 0) m->opencl_set = w[1];
        break;
      case OpDecorate: decorate(m, at, w[1], at + 2); break;
      case OpGroupDecorate: decorate_group(m, at, at); break;
      case OpMemoryModel:
        if (w[1] < 1 || w[1] > 2 || w[2] != 2)
          UNSUPPORTED(m, at, "the memory must be OpenCL's, with physical addresses");
        m->addressing = w[1];
        break;
      case OpCapability:
        if (!is_capability(w[1]) && !m->build->trusted) REFUSE(m, at, "there is no capability %u", w[1]);
        m->capability_count++;
        break;
      case OpEntryPoint: entry_point(m, at); break;
      case OpExecutionMode: execution_mode(m, at); break;
      case STRUCT_CONTINUED:
      case COMPOSITE_CONTINUED:
      case SPEC_COMPOSITE_CONTINUED: UNSUPPORTED(m, at, "composites in parts are not supported");
      case OpUndef:
      case OpVariable:
        if (op == OpVariable) spirv_variable_decode(m, at);
        else spirv_constant_decode(m, at);
        break;
      default:
        if (spirv_is_type(op)) spirv_type_decode(m, at);
        else if (op >= OpConstantTrue && op <= OpSpecConstantOp) spirv_constant_decode(m, at);
    }
  }
  for (uint32_t mode = HEADER; mode < at; mode += spirv_length(m, mode))
    if (spirv_op(m, mode) == OpExecutionModeId) execution_mode_id(m, mode);
  return at;
}

static void swap_bytes(spirv_module *m) {
  for (uint32_t i = 0; i < m->count; i++) m->words[i] = __builtin_bswap32(m->words[i]);
}

spirv_module *spirv_module_new(spirv_arena *arena, const spirv_build *build, uint32_t index, bool *spec_used) {
  const spirv_binary *binary = &build->binaries[index];
  spirv_module *m = SPIRV_NEW(arena, spirv_module);
  m->arena = arena;
  arena->decoding = m;
  m->build = build;
  m->binary = binary;
  m->spec_used = spec_used;
  if (binary->size > UINT32_MAX) UNSUPPORTED(m, 0, "a module of %zu bytes", binary->size);
  if (binary->size < HEADER * 4 || binary->size % 4 != 0)
    REFUSE(m, (uint32_t)(binary->size / 4), "a module must have whole words, and at least %d, got %zu bytes", HEADER,
           binary->size);
  m->count = (uint32_t)(binary->size / 4);
  m->words = SPIRV_ARRAY(arena, uint32_t, m->count + 1);
  memcpy(m->words, binary->bytes, binary->size);
  if (m->words[0] == __builtin_bswap32(MAGIC)) swap_bytes(m);
  if (m->words[0] != MAGIC) REFUSE(m, 0, "the first word must be 0x%x, got 0x%x", MAGIC, m->words[0]);
  if (m->words[1] < 0x10000 || m->words[1] > 0x10600 || (m->words[1] & 0xff) != 0)
    REFUSE(m, 1, "the version must be 1.0 to 1.6, got 0x%x", m->words[1]);
  m->bound = m->words[3];
  uint32_t most = m->count * 4 + 1024; /* a module that names few ids needs no memory for many */
  if (most > MAX_BOUND) most = MAX_BOUND;
  if (m->bound == 0 || m->bound > most) REFUSE(m, 3, "the bound of the ids must be 1 to %u, got %u", most, m->bound);
  if (m->words[4] != 0) REFUSE(m, 4, "the reserved word must be 0, got %u", m->words[4]);
  m->ids = SPIRV_ARRAY(arena, spirv_id, m->bound);
  for (uint32_t at = HEADER; at < m->count; at += spirv_length(m, at)) {
    uint32_t length = spirv_length(m, at);
    if (length == 0 || length > m->count - at)
      REFUSE(m, at, "an instruction of %u words where %u are left", length, m->count - at);
    check(m, at);
  }
  spirv_functions_decode(m, declarations(m));
  if (m->capability_count == 0 || m->addressing == 0)
    REFUSE(m, HEADER, "the module declares no capability or no memory model");
  for (uint32_t e = 0; e < m->entry_count; e++)
    if (m->ids[m->entries[e].function].op != OpFunction)
      REFUSE(m, m->entries[e].at, "entry point %s is no function", m->entries[e].name);
  spirv_check(m);
  return m;
}
