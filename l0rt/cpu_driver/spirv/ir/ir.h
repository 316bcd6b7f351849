/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h: the intermediate form of a kernel: all calls are inlined, and a value is one scalar in each lane.
 *
 * Each value is assigned once. A vector, structure or array of the module becomes one value for each of its scalars, so
 * that extracting and inserting components costs nothing. */
#ifndef L0RT_CPU_SPIRV_IR_H
#define L0RT_CPU_SPIRV_IR_H

#include "spirv/decode/module.h"

/* Operations with two operands and a result of the same lane kind: X(name, C expression of x and y). The types are the
 * unsigned integer U and the signed integer S of the lane, which have BITS bits, 8 to 64; or F, float or double. */
#define IR_INTEGER2(X)                                                                                                 \
  X(ADD, (U)(x + y))                                                                                                   \
  X(SUB, (U)(x - y))                                                                                                   \
  X(MUL, (U)((uint64_t)x * y))                                                                                         \
  X(UMULHI, (U)((WU)x * y >> BITS))                                                                                    \
  X(UDIV, y == 0 ? 0 : (U)(x / y))                                                                                     \
  X(UREM, y == 0 ? 0 : (U)(x % y))                                                                                     \
  X(SDIV, y == 0 ? 0 : (S)y == -1 ? (U)(0 - (uint64_t)x) : (U)((S)x / (S)y))                                           \
  X(SREM, y == 0 || (S)y == -1 ? 0 : (U)((S)x % (S)y))                                                                 \
  X(SMOD, y == 0 || (S)y == -1 ? 0 : (U)((S)x % (S)y + ((S)x % (S)y != 0 && ((S)x ^ (S)y) < 0 ? (S)y : 0)))            \
  X(SHL, (U)((uint64_t)x << (y & (BITS - 1))))                                                                         \
  X(LSHR, (U)(x >> (y & (BITS - 1))))                                                                                  \
  X(ASHR, (U)((S)x >> (y & (BITS - 1))))                                                                               \
  X(AND, x &y)                                                                                                         \
  X(OR, x | y)                                                                                                         \
  X(XOR, x ^ y)                                                                                                        \
  X(UMIN, x < y ? x : y)                                                                                               \
  X(UMAX, x > y ? x : y)                                                                                               \
  X(SMIN, (S)x < (S)y ? x : y)                                                                                         \
  X(SMAX, (S)x > (S)y ? x : y)

/* The same, but too rare for a handler of each form: either both operands vary or both are uniform. */
#define IR_RARE2(X)                                                                                                    \
  X(SMULHI, (U)((WS)(S)x * (S)y >> BITS))                                                                              \
  X(UADDSAT, (U)(x + y) < x ? (U) ~(U)0 : (U)(x + y))                                                                  \
  X(USUBSAT, x < y ? 0 : (U)(x - y))                                                                                   \
  X(SADDSAT, SATURATE((WS)(S)x + (S)y))                                                                                \
  X(SSUBSAT, SATURATE((WS)(S)x - (S)y))                                                                                \
  X(UHADD, (U)((x & y) + ((x ^ y) >> 1)))                                                                              \
  X(SHADD, (U)((S)(x & y) + ((S)(x ^ y) >> 1)))                                                                        \
  X(URHADD, (U)((x | y) - ((x ^ y) >> 1)))                                                                             \
  X(SRHADD, (U)((S)(x | y) - ((S)(x ^ y) >> 1)))                                                                       \
  X(UABSDIFF, x > y ? (U)(x - y) : (U)(y - x))                                                                         \
  X(SABSDIFF, (S)x > (S)y ? (U)(x - y) : (U)(y - x))                                                                   \
  X(ROTATE, (U)(x << (y & (BITS - 1)) | x >> ((BITS - (y & (BITS - 1))) & (BITS - 1))))

#define IR_FLOAT2(X)                                                                                                   \
  X(FADD, x + y)                                                                                                       \
  X(FSUB, x - y)                                                                                                       \
  X(FMUL, x *y)                                                                                                        \
  X(FDIV, x / y)                                                                                                       \
  X(FMIN, y < x || x != x ? y : x)                                                                                     \
  X(FMAX, y > x || x != x ? y : x)

/* Operations with two operands whose result is a boolean. */
#define IR_INTEGER_COMPARE(X)                                                                                          \
  X(EQ, x == y)                                                                                                        \
  X(NE, x != y)                                                                                                        \
  X(TEST, (x & y) != 0)                                                                                                \
  X(ULT, x < y)                                                                                                        \
  X(ULE, x <= y)                                                                                                       \
  X(SLT, (S)x < (S)y)                                                                                                  \
  X(SLE, (S)x <= (S)y)

#define IR_FLOAT_COMPARE(X)                                                                                            \
  X(FOEQ, x == y)                                                                                                      \
  X(FONE, (x < y) | (x > y))                                                                                           \
  X(FOLT, x < y)                                                                                                       \
  X(FOLE, x <= y)                                                                                                      \
  X(FUEQ, !((x < y) | (x > y)))                                                                                        \
  X(FUNE, x != y)                                                                                                      \
  X(FULT, !(x >= y))                                                                                                   \
  X(FULE, !(x > y))                                                                                                    \
  X(ORDERED, (x == x) & (y == y))                                                                                      \
  X(UNORDERED, (x != x) | (y != y))

#define IR_INTEGER1(X)                                                                                                 \
  X(NEG, (U)(0 - (uint64_t)x))                                                                                         \
  X(NOT, (U)~x)                                                                                                        \
  X(SABS, (S)x < 0 ? (U)(0 - (uint64_t)x) : x)                                                                         \
  X(CLZ, count_leading(x, BITS))                                                                                       \
  X(CTZ, count_trailing(x, BITS))                                                                                      \
  X(POPCOUNT, (U)count_ones(x))                                                                                        \
  X(BITREVERSE, (U)(reversed(x) >> (64 - BITS)))

#define IR_FLOAT1(X)                                                                                                   \
  X(FNEG, -x)                                                                                                          \
  X(FABS, ABS(x))                                                                                                      \
  X(SQRT, SQRT(x))                                                                                                     \
  X(FLOOR, FLOOR(x))                                                                                                   \
  X(CEIL, CEIL(x))                                                                                                     \
  X(TRUNC, TRUNC(x))                                                                                                   \
  X(RINT, RINT(x))

/* Operations on one float whose result is a boolean. */
#define IR_FLOAT_CLASS(X)                                                                                              \
  X(ISNAN, x != x)                                                                                                     \
  X(ISINF, ABS(x) == (F)INFINITY)                                                                                      \
  X(ISFINITE, ABS(x) < (F)INFINITY)                                                                                    \
  X(ISNORMAL, (ABS(x) >= SMALLEST) & (ABS(x) < (F)INFINITY))                                                           \
  X(SIGNBIT, SIGN(x))

typedef enum {
  IR_NONE,
#define IR_NAME(name, expression) IR_##name,
  IR_INTEGER2(IR_NAME) IR_FLOAT2(IR_NAME) IR_RARE2(IR_NAME) IR_INTEGER_COMPARE(IR_NAME) IR_FLOAT_COMPARE(IR_NAME)
      IR_INTEGER1(IR_NAME) IR_FLOAT1(IR_NAME) IR_FLOAT_CLASS(IR_NAME)
#undef IR_NAME
          IR_SELECT, /* a ? b : c; a is a boolean */
  IR_FMA,
  IR_CONVERT_U, /* from an unsigned integer of kind `lane` to the kind of the result */
  IR_CONVERT_S, /* from a signed integer */
  IR_CONVERT_F, /* from a float to a float */
  IR_FLOAT_TO_U, /* saturates; NaN becomes 0 */
  IR_FLOAT_TO_S,
  IR_BITS, /* the same bits as another lane kind */
  IR_COPY, /* in running lanes; the only operation that may write a value twice */
  IR_SPLAT, /* a uniform value in every lane */
  IR_MATH1, /* extra: the function */
  IR_MATH2,
  IR_MATH2_INT, /* the second operand is an I32 */
  IR_MATH1_INT, /* the result is an I32 */
  IR_INDEX, /* a + sign-extended b × imm; lane: the kind of b */
  IR_BUILTIN, /* extra: the built-in variable */
  IR_ARGUMENT, /* imm: offset in the argument block */
  IR_ARGUMENT_ADDRESS, /* imm: offset of bytes passed by value */
  IR_LOCAL_ADDRESS, /* imm: offset in local memory */
  IR_LOCAL_ARGUMENT, /* imm: number of the argument */
  IR_PRIVATE_ADDRESS, /* imm: offset in a lane's private memory */
  IR_LOAD,      /* from a + imm */
  IR_STORE,     /* b to a + imm */
  IR_LOAD_AT,   /* from a + b × scale + imm */
  IR_STORE_AT,  /* c to a + b × scale + imm */
  IR_ATOMIC,    /* extra: the operation; a: address, b: operand, c: comparand */
  IR_COPY_MEMORY, /* c bytes from b to a */
  IR_ASYNC_COPY,  /* c elements from b to a; extra: stride; imm: element size × 2, + 1 if b has the stride */
  IR_GENERIC_CAST, /* a if it is in storage class `extra`, else 0 */
  IR_GROUP_PUT, /* of a work-group: a is stored where the other work-items read it */
  IR_GROUP_GET, /* extra: operation; imm: scan kind; a: index of a broadcast */
  IR_SUBGROUP,  /* extra: operation; imm: scan kind, and from CLUSTER_SHIFT on how large clusters are, or 0 */
  IR_FENCE,     /* of a sub-group: its lanes run together, so it only tells races.c that accesses are ordered */
  IR_PRINTF,    /* imm: index in `printfs`; a: address of the format */
  IR_IMAGE,     /* extra: ir_image; imm: see IMAGE_SHAPE; a: address of coordinates and texel; b: image; c: sampler */
  IR_IMAGE_QUERY, /* extra: ir_query; a: image */
  IR_OPERATIONS,
} ir_op;

typedef enum {
  ATOMIC_LOAD,
  ATOMIC_STORE,
  ATOMIC_EXCHANGE,
  ATOMIC_COMPARE,
  ATOMIC_ADD,
  ATOMIC_SUB,
  ATOMIC_AND,
  ATOMIC_OR,
  ATOMIC_XOR,
  ATOMIC_SMIN,
  ATOMIC_SMAX,
  ATOMIC_UMIN,
  ATOMIC_UMAX,
  ATOMIC_FADD,
  ATOMIC_FMIN,
  ATOMIC_FMAX,
  ATOMIC_INC_WRAP,
} ir_atomic;

typedef enum {
  COLLECT_ADD,
  COLLECT_MUL,
  COLLECT_FADD,
  COLLECT_FMUL,
  COLLECT_SMIN,
  COLLECT_SMAX,
  COLLECT_UMIN,
  COLLECT_UMAX,
  COLLECT_FMIN,
  COLLECT_FMAX,
  COLLECT_AND,
  COLLECT_OR,
  COLLECT_XOR,
  COLLECT_ALL,
  COLLECT_ANY,
  COLLECT_BROADCAST,
  COLLECT_SHUFFLE,
  COLLECT_SHUFFLE_XOR,
  COLLECT_SHUFFLE_UP,
  COLLECT_SHUFFLE_DOWN,
  COLLECT_ELECT,
  COLLECT_ALL_EQUAL,
  COLLECT_BALLOT,
  COLLECT_FIRST,
} ir_collective;

enum { CLUSTER_SHIFT = 8 };

typedef enum { IMAGE_READ, IMAGE_WRITE, IMAGE_SAMPLE, IMAGE_SAMPLE_INT /* at integer coordinates */ } ir_image;

/* `imm` of IR_IMAGE: SPIR-V's Dim of the image's type, and whether it is an array. */
enum { IMAGE_DIM = 7, IMAGE_ARRAY = 8 };

/* At the address of IR_IMAGE: four coordinates, and four channels of a texel, of 32 bits each. */
enum { IMAGE_TEXEL = 16, IMAGE_BYTES = 32 };

typedef enum { QUERY_WIDTH, QUERY_HEIGHT, QUERY_DEPTH, QUERY_ELEMENTS, QUERY_ORDER, QUERY_DATA_TYPE } ir_query;

typedef enum { /* of IR_BUILTIN: what no number of SPIR-V names */
               BUILTIN_GROUP_LINEAR = 1000,
} ir_builtin;

typedef struct {
  uint16_t op;
  uint8_t lane;  /* kind of the operands */
  uint8_t scale; /* of IR_LOAD_AT and IR_STORE_AT */
  uint32_t result, a, b, c; /* values; 0: none */
  uint32_t at;              /* word of the instruction that it comes from; see spirv_program_place */
  uint32_t extra;
  uint64_t imm;
} ir_insn;

typedef struct {
  uint8_t lane;
  bool constant, varying, used;
  bool across;        /* made by a phi, or used in another block: it shares its register with no value */
  uint32_t block;     /* the block that makes it */
  uint32_t insn;      /* number of the instruction there */
  uint64_t bits;      /* of a constant */
  uint32_t place;     /* of its register, in bytes from the beginning of the registers */
  uint32_t wide;      /* of a second register, with the uniform value in every lane; 0: none */
} ir_value;

typedef struct {
  uint32_t result, at;
  uint32_t *sources; /* one for each predecessor of the block, in the order of predecessors */
} ir_phi;

typedef enum { END_RETURN, END_JUMP, END_BRANCH, END_BARRIER, END_TRAP } ir_end;

typedef struct {
  ir_insn *insns;
  uint32_t count, capacity;
  ir_insn *whole; /* phi.c: what a wave does instead whose lanes all run; from `whole_tail` on the results are phis */
  uint32_t whole_count, whole_tail; /* `whole_count` is 0 if that is the same */
  ir_phi *phis;
  uint32_t phi_count, phi_capacity;
  ir_end end;
  uint32_t condition;    /* of END_BRANCH */
  uint32_t successor[2]; /* block numbers; END_JUMP and END_BARRIER have one */
  uint32_t at;           /* word of the terminator */
  uint32_t label, activation; /* of the block that it ends: its label, and the inlined call */
  uint32_t begun;             /* the inlined call that it began in: it may go on in another */
  uint32_t *predecessors;
  uint32_t predecessor_count;
  uint32_t order; /* number in the code, from 1; 0: unreachable */
  uint32_t dominator, after; /* immediate dominator and post-dominator; IR_EXIT: none */
  uint32_t loop;             /* header of the innermost loop around it; IR_EXIT: none */
  uint32_t outer;            /* of a header: the loop around the loop of the header */
  bool joins, unsettled;     /* paths of a varying branch join here; lanes leave its loop at different times */
} ir_block;

enum { IR_EXIT = UINT32_MAX };

typedef struct {
  uint32_t component_count;
  uint32_t *components; /* values */
  uint8_t *arguments;   /* number of components of each argument */
  uint32_t argument_count;
  uint32_t at;
} ir_printf;

enum { IR_CONSTANTS = 256 };
enum { IR_INDEX_64, IR_INDEX_S32, IR_INDEX_U32 }; /* `extra` of IR_LOAD_AT, IR_STORE_AT: type of the index */

typedef struct {
  spirv_arena *arena;
  ir_value *values;
  uint32_t value_count, value_capacity;
  ir_block *blocks; /* 0 is the entry */
  uint32_t block_count, block_capacity;
  uint32_t *order; /* reachable blocks */
  uint32_t order_count;
  bool irreducible, subgroups, barriers;
  uint64_t private_bytes, local_bytes;
  ir_printf *printfs;
  uint32_t printf_count, printf_capacity;
  uint32_t constants[IR_CONSTANTS]; /* a hash table, so that each constant is made once */
} ir_kernel;

uint32_t ir_constant(ir_kernel *k, spirv_lane lane, uint64_t bits);
uint32_t ir_value_new(ir_kernel *k, spirv_lane lane);
uint32_t ir_block_new(ir_kernel *k);
void ir_push(ir_kernel *k, ir_insn **insns, uint32_t *count, uint32_t *capacity, ir_insn insn); /* to an array */
void ir_reserve(ir_kernel *k, uint32_t block, uint32_t count); /* so many instructions fit, and are not moved */
ir_insn *ir_append(ir_kernel *k, uint32_t block, ir_insn insn); /* valid until the next call */
bool ir_has_effect(const ir_insn *insn); /* does it do more than make its result? */
uint32_t *ir_operand(ir_insn *insn, int i); /* NULL past the last one */
/* The caller frees what these return, by spirv_free. */
ir_insn **ir_makers(ir_kernel *k); /* of each value that there is now: the instruction that makes it, or NULL */
uint32_t *ir_uses(ir_kernel *k); /* of each value: how often it is used */
int ir_successors(const ir_block *block); /* their number */
bool ir_is_inside(const ir_kernel *k, uint32_t block, uint32_t loop); /* also in a loop in it */
/* The last of the values that replace this one. */
static inline uint32_t ir_real(const uint32_t *alias, uint32_t count, uint32_t value) {
  while (value < count && alias[value] != 0) value = alias[value];
  return value;
}
void ir_replace_values(ir_kernel *k, const uint32_t *alias,
                       uint32_t count); /* each of `count`, if its alias is not 0 */
/* Computes an operation with integer constants; false: it is another one. */
bool ir_evaluate(const ir_kernel *k, const ir_insn *insn, const uint64_t *operands, uint64_t *result);

/* lower.c */
struct spirv_program;
ir_kernel *spirv_lower(spirv_arena *arena, struct spirv_program *program, const spirv_module *m, const spirv_entry *e);

/* flow.c, uniform.c, unroll.c, fold.c, promote.c, simplify.c, cheapen.c, fuse.c, hoist.c, phi.c */
void ir_find_order(ir_kernel *k);
void ir_find_varying(ir_kernel *k);
void ir_unroll(ir_kernel *k); /* loops that index private memory */
void ir_fold(ir_kernel *k); /* constants, and branches that they decide */
bool ir_promote(ir_kernel *k); /* private variables to registers; false: there is none */
void ir_simplify(ir_kernel *k); /* joins blocks, makes selections of short branches */
void ir_cheapen(ir_kernel *k); /* of operations with constants; does not change which values vary */
void ir_fuse(ir_kernel *k); /* moves address computations into loads and stores */
void ir_remove_unused(ir_kernel *k);
void ir_hoist(ir_kernel *k); /* moves varying values out of loops */
void ir_join_products(ir_kernel *k); /* with the sums for which they are made, as they are in addresses */
void ir_replace_phis(ir_kernel *k); /* by copies */

#endif
