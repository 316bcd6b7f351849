/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.h: the instructions and numbers of the SPIR-V specification that the engine accepts.
 *
 * The pattern of an instruction has one letter for each operand: T result type, R result id, i id, n literal word,
 * s string. After ? stand operands that may be absent: i an id, * ids up to the end, # literals up to the end. */
#ifndef L0RT_CPU_SPIRV_GRAMMAR_H
#define L0RT_CPU_SPIRV_GRAMMAR_H

#define SPIRV_INSTRUCTIONS(X)                                                                                          \
  X(Nop, 0, "")                                                                                                        \
  X(Undef, 1, "TR")                                                                                                    \
  X(SourceContinued, 2, "s")                                                                                           \
  X(Source, 3, "nn?#")                                                                                                 \
  X(SourceExtension, 4, "s")                                                                                           \
  X(Name, 5, "is")                                                                                                     \
  X(MemberName, 6, "ins")                                                                                              \
  X(String, 7, "Rs")                                                                                                   \
  X(Line, 8, "inn")                                                                                                    \
  X(Extension, 10, "s")                                                                                                \
  X(ExtInstImport, 11, "Rs")                                                                                           \
  X(ExtInst, 12, "TRin?#")                                                                                             \
  X(MemoryModel, 14, "nn")                                                                                             \
  X(EntryPoint, 15, "nis?*")                                                                                           \
  X(ExecutionMode, 16, "in?#")                                                                                         \
  X(Capability, 17, "n")                                                                                               \
  X(TypeVoid, 19, "R")                                                                                                 \
  X(TypeBool, 20, "R")                                                                                                 \
  X(TypeInt, 21, "Rnn")                                                                                                \
  X(TypeFloat, 22, "Rn?n")                                                                                             \
  X(TypeVector, 23, "Rin")                                                                                             \
  X(TypeImage, 25, "Rinnnnnn?n")                                                                                       \
  X(TypeSampler, 26, "R")                                                                                              \
  X(TypeSampledImage, 27, "Ri")                                                                                        \
  X(TypeArray, 28, "Rii")                                                                                              \
  X(TypeStruct, 30, "R?*")                                                                                             \
  X(TypeOpaque, 31, "Rs")                                                                                              \
  X(TypePointer, 32, "Rni")                                                                                            \
  X(TypeFunction, 33, "Ri?*")                                                                                          \
  X(TypeEvent, 34, "R")                                                                                                \
  X(TypeForwardPointer, 39, "in")                                                                                      \
  X(ConstantTrue, 41, "TR")                                                                                            \
  X(ConstantFalse, 42, "TR")                                                                                           \
  X(Constant, 43, "TRn?#")                                                                                             \
  X(ConstantComposite, 44, "TR?*")                                                                                     \
  X(ConstantSampler, 45, "TRnnn")                                                                                      \
  X(ConstantNull, 46, "TR")                                                                                            \
  X(SpecConstantTrue, 48, "TR")                                                                                        \
  X(SpecConstantFalse, 49, "TR")                                                                                       \
  X(SpecConstant, 50, "TRn?#")                                                                                         \
  X(SpecConstantComposite, 51, "TR?*")                                                                                 \
  X(SpecConstantOp, 52, "TRn?#")                                                                                       \
  X(Function, 54, "TRni")                                                                                              \
  X(FunctionParameter, 55, "TR")                                                                                       \
  X(FunctionEnd, 56, "")                                                                                               \
  X(FunctionCall, 57, "TRi?*")                                                                                         \
  X(Variable, 59, "TRn?i")                                                                                             \
  X(Load, 61, "TRi?#")                                                                                                 \
  X(Store, 62, "ii?#")                                                                                                 \
  X(CopyMemory, 63, "ii?#")                                                                                            \
  X(CopyMemorySized, 64, "iii?#")                                                                                      \
  X(AccessChain, 65, "TRi?*")                                                                                          \
  X(InBoundsAccessChain, 66, "TRi?*")                                                                                  \
  X(PtrAccessChain, 67, "TRii?*")                                                                                      \
  X(GenericPtrMemSemantics, 69, "TRi")                                                                                 \
  X(InBoundsPtrAccessChain, 70, "TRii?*")                                                                              \
  X(Decorate, 71, "in?#")                                                                                              \
  X(MemberDecorate, 72, "inn?#")                                                                                       \
  X(DecorationGroup, 73, "R")                                                                                          \
  X(GroupDecorate, 74, "i?*")                                                                                          \
  X(GroupMemberDecorate, 75, "i?#")                                                                                    \
  X(VectorExtractDynamic, 77, "TRii")                                                                                  \
  X(VectorInsertDynamic, 78, "TRiii")                                                                                  \
  X(VectorShuffle, 79, "TRii?#")                                                                                       \
  X(CompositeConstruct, 80, "TR?*")                                                                                    \
  X(CompositeExtract, 81, "TRi?#")                                                                                     \
  X(CompositeInsert, 82, "TRii?#")                                                                                     \
  X(CopyObject, 83, "TRi")                                                                                             \
  X(SampledImage, 86, "TRii")                                                                                          \
  X(ImageSampleExplicitLod, 88, "TRiin?#")                                                                             \
  X(ImageRead, 98, "TRii?#")                                                                                           \
  X(ImageWrite, 99, "iii?#")                                                                                           \
  X(Image, 100, "TRi")                                                                                                 \
  X(ImageQueryFormat, 101, "TRi")                                                                                      \
  X(ImageQueryOrder, 102, "TRi")                                                                                       \
  X(ImageQuerySizeLod, 103, "TRii")                                                                                    \
  X(ImageQuerySize, 104, "TRi")                                                                                        \
  X(ImageQueryLevels, 106, "TRi")                                                                                      \
  X(ImageQuerySamples, 107, "TRi")                                                                                     \
  X(ConvertFToU, 109, "TRi")                                                                                           \
  X(ConvertFToS, 110, "TRi")                                                                                           \
  X(ConvertSToF, 111, "TRi")                                                                                           \
  X(ConvertUToF, 112, "TRi")                                                                                           \
  X(UConvert, 113, "TRi")                                                                                              \
  X(SConvert, 114, "TRi")                                                                                              \
  X(FConvert, 115, "TRi")                                                                                              \
  X(ConvertPtrToU, 117, "TRi")                                                                                         \
  X(SatConvertSToU, 118, "TRi")                                                                                        \
  X(SatConvertUToS, 119, "TRi")                                                                                        \
  X(ConvertUToPtr, 120, "TRi")                                                                                         \
  X(PtrCastToGeneric, 121, "TRi")                                                                                      \
  X(GenericCastToPtr, 122, "TRi")                                                                                      \
  X(GenericCastToPtrExplicit, 123, "TRin")                                                                             \
  X(Bitcast, 124, "TRi")                                                                                               \
  X(SNegate, 126, "TRi")                                                                                               \
  X(FNegate, 127, "TRi")                                                                                               \
  X(IAdd, 128, "TRii")                                                                                                 \
  X(FAdd, 129, "TRii")                                                                                                 \
  X(ISub, 130, "TRii")                                                                                                 \
  X(FSub, 131, "TRii")                                                                                                 \
  X(IMul, 132, "TRii")                                                                                                 \
  X(FMul, 133, "TRii")                                                                                                 \
  X(UDiv, 134, "TRii")                                                                                                 \
  X(SDiv, 135, "TRii")                                                                                                 \
  X(FDiv, 136, "TRii")                                                                                                 \
  X(UMod, 137, "TRii")                                                                                                 \
  X(SRem, 138, "TRii")                                                                                                 \
  X(SMod, 139, "TRii")                                                                                                 \
  X(FRem, 140, "TRii")                                                                                                 \
  X(FMod, 141, "TRii")                                                                                                 \
  X(VectorTimesScalar, 142, "TRii")                                                                                    \
  X(Dot, 148, "TRii")                                                                                                  \
  X(IAddCarry, 149, "TRii")                                                                                            \
  X(ISubBorrow, 150, "TRii")                                                                                           \
  X(UMulExtended, 151, "TRii")                                                                                         \
  X(SMulExtended, 152, "TRii")                                                                                         \
  X(Any, 154, "TRi")                                                                                                   \
  X(All, 155, "TRi")                                                                                                   \
  X(IsNan, 156, "TRi")                                                                                                 \
  X(IsInf, 157, "TRi")                                                                                                 \
  X(IsFinite, 158, "TRi")                                                                                              \
  X(IsNormal, 159, "TRi")                                                                                              \
  X(SignBitSet, 160, "TRi")                                                                                            \
  X(LessOrGreater, 161, "TRii")                                                                                        \
  X(Ordered, 162, "TRii")                                                                                              \
  X(Unordered, 163, "TRii")                                                                                            \
  X(LogicalEqual, 164, "TRii")                                                                                         \
  X(LogicalNotEqual, 165, "TRii")                                                                                      \
  X(LogicalOr, 166, "TRii")                                                                                            \
  X(LogicalAnd, 167, "TRii")                                                                                           \
  X(LogicalNot, 168, "TRi")                                                                                            \
  X(Select, 169, "TRiii")                                                                                              \
  X(IEqual, 170, "TRii")                                                                                               \
  X(INotEqual, 171, "TRii")                                                                                            \
  X(UGreaterThan, 172, "TRii")                                                                                         \
  X(SGreaterThan, 173, "TRii")                                                                                         \
  X(UGreaterThanEqual, 174, "TRii")                                                                                    \
  X(SGreaterThanEqual, 175, "TRii")                                                                                    \
  X(ULessThan, 176, "TRii")                                                                                            \
  X(SLessThan, 177, "TRii")                                                                                            \
  X(ULessThanEqual, 178, "TRii")                                                                                       \
  X(SLessThanEqual, 179, "TRii")                                                                                       \
  X(FOrdEqual, 180, "TRii")                                                                                            \
  X(FUnordEqual, 181, "TRii")                                                                                          \
  X(FOrdNotEqual, 182, "TRii")                                                                                         \
  X(FUnordNotEqual, 183, "TRii")                                                                                       \
  X(FOrdLessThan, 184, "TRii")                                                                                         \
  X(FUnordLessThan, 185, "TRii")                                                                                       \
  X(FOrdGreaterThan, 186, "TRii")                                                                                      \
  X(FUnordGreaterThan, 187, "TRii")                                                                                    \
  X(FOrdLessThanEqual, 188, "TRii")                                                                                    \
  X(FUnordLessThanEqual, 189, "TRii")                                                                                  \
  X(FOrdGreaterThanEqual, 190, "TRii")                                                                                 \
  X(FUnordGreaterThanEqual, 191, "TRii")                                                                               \
  X(ShiftRightLogical, 194, "TRii")                                                                                    \
  X(ShiftRightArithmetic, 195, "TRii")                                                                                 \
  X(ShiftLeftLogical, 196, "TRii")                                                                                     \
  X(BitwiseOr, 197, "TRii")                                                                                            \
  X(BitwiseXor, 198, "TRii")                                                                                           \
  X(BitwiseAnd, 199, "TRii")                                                                                           \
  X(Not, 200, "TRi")                                                                                                   \
  X(BitFieldInsert, 201, "TRiiii")                                                                                     \
  X(BitFieldSExtract, 202, "TRiii")                                                                                    \
  X(BitFieldUExtract, 203, "TRiii")                                                                                    \
  X(BitReverse, 204, "TRi")                                                                                            \
  X(BitCount, 205, "TRi")                                                                                              \
  X(ControlBarrier, 224, "iii")                                                                                        \
  X(MemoryBarrier, 225, "ii")                                                                                          \
  X(AtomicLoad, 227, "TRiii")                                                                                          \
  X(AtomicStore, 228, "iiii")                                                                                          \
  X(AtomicExchange, 229, "TRiiii")                                                                                     \
  X(AtomicCompareExchange, 230, "TRiiiiii")                                                                            \
  X(AtomicCompareExchangeWeak, 231, "TRiiiiii")                                                                        \
  X(AtomicIIncrement, 232, "TRiii")                                                                                    \
  X(AtomicIDecrement, 233, "TRiii")                                                                                    \
  X(AtomicIAdd, 234, "TRiiii")                                                                                         \
  X(AtomicISub, 235, "TRiiii")                                                                                         \
  X(AtomicSMin, 236, "TRiiii")                                                                                         \
  X(AtomicUMin, 237, "TRiiii")                                                                                         \
  X(AtomicSMax, 238, "TRiiii")                                                                                         \
  X(AtomicUMax, 239, "TRiiii")                                                                                         \
  X(AtomicAnd, 240, "TRiiii")                                                                                          \
  X(AtomicOr, 241, "TRiiii")                                                                                           \
  X(AtomicXor, 242, "TRiiii")                                                                                          \
  X(Phi, 245, "TR?*")                                                                                                  \
  X(LoopMerge, 246, "iin?#")                                                                                           \
  X(SelectionMerge, 247, "in")                                                                                         \
  X(Label, 248, "R")                                                                                                   \
  X(Branch, 249, "i")                                                                                                  \
  X(BranchConditional, 250, "iii?#")                                                                                   \
  X(Switch, 251, "ii?#")                                                                                               \
  X(Return, 253, "")                                                                                                   \
  X(ReturnValue, 254, "i")                                                                                             \
  X(Unreachable, 255, "")                                                                                              \
  X(LifetimeStart, 256, "in")                                                                                          \
  X(LifetimeStop, 257, "in")                                                                                           \
  X(GroupAsyncCopy, 259, "TRiiiiii")                                                                                   \
  X(GroupWaitEvents, 260, "iii")                                                                                       \
  X(GroupAll, 261, "TRii")                                                                                             \
  X(GroupAny, 262, "TRii")                                                                                             \
  X(GroupBroadcast, 263, "TRiii")                                                                                      \
  X(GroupIAdd, 264, "TRini")                                                                                           \
  X(GroupFAdd, 265, "TRini")                                                                                           \
  X(GroupFMin, 266, "TRini")                                                                                           \
  X(GroupUMin, 267, "TRini")                                                                                           \
  X(GroupSMin, 268, "TRini")                                                                                           \
  X(GroupFMax, 269, "TRini")                                                                                           \
  X(GroupUMax, 270, "TRini")                                                                                           \
  X(GroupSMax, 271, "TRini")                                                                                           \
  X(NoLine, 317, "")                                                                                                   \
  X(AtomicFlagTestAndSet, 318, "TRiii")                                                                                \
  X(AtomicFlagClear, 319, "iii")                                                                                       \
  X(ModuleProcessed, 330, "s")                                                                                         \
  X(ExecutionModeId, 331, "in?*")                                                                                      \
  X(DecorateId, 332, "in?#")                                                                                           \
  X(GroupNonUniformElect, 333, "TRi")                                                                                  \
  X(GroupNonUniformAll, 334, "TRii")                                                                                   \
  X(GroupNonUniformAny, 335, "TRii")                                                                                   \
  X(GroupNonUniformAllEqual, 336, "TRii")                                                                              \
  X(GroupNonUniformBroadcast, 337, "TRiii")                                                                            \
  X(GroupNonUniformBroadcastFirst, 338, "TRii")                                                                        \
  X(GroupNonUniformBallot, 339, "TRii")                                                                                \
  X(GroupNonUniformInverseBallot, 340, "TRii")                                                                         \
  X(GroupNonUniformBallotBitExtract, 341, "TRiii")                                                                     \
  X(GroupNonUniformBallotBitCount, 342, "TRini")                                                                       \
  X(GroupNonUniformBallotFindLSB, 343, "TRii")                                                                         \
  X(GroupNonUniformBallotFindMSB, 344, "TRii")                                                                         \
  X(GroupNonUniformShuffle, 345, "TRiii")                                                                              \
  X(GroupNonUniformShuffleXor, 346, "TRiii")                                                                           \
  X(GroupNonUniformShuffleUp, 347, "TRiii")                                                                            \
  X(GroupNonUniformShuffleDown, 348, "TRiii")                                                                          \
  X(GroupNonUniformIAdd, 349, "TRini?i")                                                                               \
  X(GroupNonUniformFAdd, 350, "TRini?i")                                                                               \
  X(GroupNonUniformIMul, 351, "TRini?i")                                                                               \
  X(GroupNonUniformFMul, 352, "TRini?i")                                                                               \
  X(GroupNonUniformSMin, 353, "TRini?i")                                                                               \
  X(GroupNonUniformUMin, 354, "TRini?i")                                                                               \
  X(GroupNonUniformFMin, 355, "TRini?i")                                                                               \
  X(GroupNonUniformSMax, 356, "TRini?i")                                                                               \
  X(GroupNonUniformUMax, 357, "TRini?i")                                                                               \
  X(GroupNonUniformFMax, 358, "TRini?i")                                                                               \
  X(GroupNonUniformBitwiseAnd, 359, "TRini?i")                                                                         \
  X(GroupNonUniformBitwiseOr, 360, "TRini?i")                                                                          \
  X(GroupNonUniformBitwiseXor, 361, "TRini?i")                                                                         \
  X(GroupNonUniformLogicalAnd, 362, "TRini?i")                                                                         \
  X(GroupNonUniformLogicalOr, 363, "TRini?i")                                                                          \
  X(GroupNonUniformLogicalXor, 364, "TRini?i")                                                                         \
  X(CopyLogical, 400, "TRi")                                                                                           \
  X(PtrEqual, 401, "TRii")                                                                                             \
  X(PtrNotEqual, 402, "TRii")                                                                                          \
  X(PtrDiff, 403, "TRii")                                                                                              \
  X(GroupNonUniformRotateKHR, 4431, "TRiii?i")                                                                         \
  X(SDot, 4450, "TRii?n")                                                                                              \
  X(UDot, 4451, "TRii?n")                                                                                              \
  X(SUDot, 4452, "TRii?n")                                                                                             \
  X(SDotAccSat, 4453, "TRiii?n")                                                                                       \
  X(UDotAccSat, 4454, "TRiii?n")                                                                                       \
  X(SUDotAccSat, 4455, "TRiii?n")                                                                                      \
  X(SubgroupShuffleINTEL, 5571, "TRii")                                                                                \
  X(SubgroupShuffleDownINTEL, 5572, "TRiii")                                                                           \
  X(SubgroupShuffleUpINTEL, 5573, "TRiii")                                                                             \
  X(SubgroupShuffleXorINTEL, 5574, "TRii")                                                                             \
  X(SubgroupBlockReadINTEL, 5575, "TRi")                                                                               \
  X(SubgroupBlockWriteINTEL, 5576, "ii")                                                                               \
  X(AtomicFMinEXT, 5614, "TRiiii")                                                                                     \
  X(AtomicFMaxEXT, 5615, "TRiiii")                                                                                     \
  X(AssumeTrueKHR, 5630, "i")                                                                                          \
  X(ExpectKHR, 5631, "TRii")                                                                                           \
  X(DecorateString, 5632, "in?#")                                                                                      \
  X(LoopControlINTEL, 5887, "?#")                                                                                      \
  X(AliasDomainDeclINTEL, 5911, "R?i")                                                                                 \
  X(AliasScopeDeclINTEL, 5912, "Ri?i")                                                                                 \
  X(AliasScopeListDeclINTEL, 5913, "R?*")                                                                              \
  X(AtomicFAddEXT, 6035, "TRiiii")                                                                                     \
  X(ConvertFToBF16INTEL, 6116, "TRi")                                                                                  \
  X(ConvertBF16ToFINTEL, 6117, "TRi")                                                                                  \
  X(GroupIMulKHR, 6401, "TRini")                                                                                       \
  X(GroupFMulKHR, 6402, "TRini")                                                                                       \
  X(GroupBitwiseAndKHR, 6403, "TRini")                                                                                 \
  X(GroupBitwiseOrKHR, 6404, "TRini")                                                                                  \
  X(GroupBitwiseXorKHR, 6405, "TRini")                                                                                 \
  X(GroupLogicalAndKHR, 6406, "TRini")                                                                                 \
  X(GroupLogicalOrKHR, 6407, "TRini")                                                                                  \
  X(GroupLogicalXorKHR, 6408, "TRini")

#define SPIRV_OPCODE(name, number, pattern) Op##name = number,
enum { SPIRV_INSTRUCTIONS(SPIRV_OPCODE) };

/* The extended instruction set OpenCL.std. */
#define SPIRV_OPENCL(X)                                                                                                \
  X(acos, 0)                                                                                                           \
  X(acosh, 1)                                                                                                          \
  X(acospi, 2)                                                                                                         \
  X(asin, 3)                                                                                                           \
  X(asinh, 4)                                                                                                          \
  X(asinpi, 5)                                                                                                         \
  X(atan, 6)                                                                                                           \
  X(atan2, 7)                                                                                                          \
  X(atanh, 8)                                                                                                          \
  X(atanpi, 9)                                                                                                         \
  X(atan2pi, 10)                                                                                                       \
  X(cbrt, 11)                                                                                                          \
  X(ceil, 12)                                                                                                          \
  X(copysign, 13)                                                                                                      \
  X(cos, 14)                                                                                                           \
  X(cosh, 15)                                                                                                          \
  X(cospi, 16)                                                                                                         \
  X(erfc, 17)                                                                                                          \
  X(erf, 18)                                                                                                           \
  X(exp, 19)                                                                                                           \
  X(exp2, 20)                                                                                                          \
  X(exp10, 21)                                                                                                         \
  X(expm1, 22)                                                                                                         \
  X(fabs, 23)                                                                                                          \
  X(fdim, 24)                                                                                                          \
  X(floor, 25)                                                                                                         \
  X(fma, 26)                                                                                                           \
  X(fmax, 27)                                                                                                          \
  X(fmin, 28)                                                                                                          \
  X(fmod, 29)                                                                                                          \
  X(fract, 30)                                                                                                         \
  X(frexp, 31)                                                                                                         \
  X(hypot, 32)                                                                                                         \
  X(ilogb, 33)                                                                                                         \
  X(ldexp, 34)                                                                                                         \
  X(lgamma, 35)                                                                                                        \
  X(lgamma_r, 36)                                                                                                      \
  X(log, 37)                                                                                                           \
  X(log2, 38)                                                                                                          \
  X(log10, 39)                                                                                                         \
  X(log1p, 40)                                                                                                         \
  X(logb, 41)                                                                                                          \
  X(mad, 42)                                                                                                           \
  X(maxmag, 43)                                                                                                        \
  X(minmag, 44)                                                                                                        \
  X(modf, 45)                                                                                                          \
  X(nan, 46)                                                                                                           \
  X(nextafter, 47)                                                                                                     \
  X(pow, 48)                                                                                                           \
  X(pown, 49)                                                                                                          \
  X(powr, 50)                                                                                                          \
  X(remainder, 51)                                                                                                     \
  X(remquo, 52)                                                                                                        \
  X(rint, 53)                                                                                                          \
  X(rootn, 54)                                                                                                         \
  X(round, 55)                                                                                                         \
  X(rsqrt, 56)                                                                                                         \
  X(sin, 57)                                                                                                           \
  X(sincos, 58)                                                                                                        \
  X(sinh, 59)                                                                                                          \
  X(sinpi, 60)                                                                                                         \
  X(sqrt, 61)                                                                                                          \
  X(tan, 62)                                                                                                           \
  X(tanh, 63)                                                                                                          \
  X(tanpi, 64)                                                                                                         \
  X(tgamma, 65)                                                                                                        \
  X(trunc, 66)                                                                                                         \
  X(half_cos, 67)                                                                                                      \
  X(half_divide, 68)                                                                                                   \
  X(half_exp, 69)                                                                                                      \
  X(half_exp2, 70)                                                                                                     \
  X(half_exp10, 71)                                                                                                    \
  X(half_log, 72)                                                                                                      \
  X(half_log2, 73)                                                                                                     \
  X(half_log10, 74)                                                                                                    \
  X(half_powr, 75)                                                                                                     \
  X(half_recip, 76)                                                                                                    \
  X(half_rsqrt, 77)                                                                                                    \
  X(half_sin, 78)                                                                                                      \
  X(half_sqrt, 79)                                                                                                     \
  X(half_tan, 80)                                                                                                      \
  X(native_cos, 81)                                                                                                    \
  X(native_divide, 82)                                                                                                 \
  X(native_exp, 83)                                                                                                    \
  X(native_exp2, 84)                                                                                                   \
  X(native_exp10, 85)                                                                                                  \
  X(native_log, 86)                                                                                                    \
  X(native_log2, 87)                                                                                                   \
  X(native_log10, 88)                                                                                                  \
  X(native_powr, 89)                                                                                                   \
  X(native_recip, 90)                                                                                                  \
  X(native_rsqrt, 91)                                                                                                  \
  X(native_sin, 92)                                                                                                    \
  X(native_sqrt, 93)                                                                                                   \
  X(native_tan, 94)                                                                                                    \
  X(fclamp, 95)                                                                                                        \
  X(degrees, 96)                                                                                                       \
  X(fmax_common, 97)                                                                                                   \
  X(fmin_common, 98)                                                                                                   \
  X(mix, 99)                                                                                                           \
  X(radians, 100)                                                                                                      \
  X(step, 101)                                                                                                         \
  X(smoothstep, 102)                                                                                                   \
  X(sign, 103)                                                                                                         \
  X(cross, 104)                                                                                                        \
  X(distance, 105)                                                                                                     \
  X(length, 106)                                                                                                       \
  X(normalize, 107)                                                                                                    \
  X(fast_distance, 108)                                                                                                \
  X(fast_length, 109)                                                                                                  \
  X(fast_normalize, 110)                                                                                               \
  X(s_abs, 141)                                                                                                        \
  X(s_abs_diff, 142)                                                                                                   \
  X(s_add_sat, 143)                                                                                                    \
  X(u_add_sat, 144)                                                                                                    \
  X(s_hadd, 145)                                                                                                       \
  X(u_hadd, 146)                                                                                                       \
  X(s_rhadd, 147)                                                                                                      \
  X(u_rhadd, 148)                                                                                                      \
  X(s_clamp, 149)                                                                                                      \
  X(u_clamp, 150)                                                                                                      \
  X(clz, 151)                                                                                                          \
  X(ctz, 152)                                                                                                          \
  X(s_mad_hi, 153)                                                                                                     \
  X(u_mad_sat, 154)                                                                                                    \
  X(s_mad_sat, 155)                                                                                                    \
  X(s_max, 156)                                                                                                        \
  X(u_max, 157)                                                                                                        \
  X(s_min, 158)                                                                                                        \
  X(u_min, 159)                                                                                                        \
  X(s_mul_hi, 160)                                                                                                     \
  X(rotate, 161)                                                                                                       \
  X(s_sub_sat, 162)                                                                                                    \
  X(u_sub_sat, 163)                                                                                                    \
  X(u_upsample, 164)                                                                                                   \
  X(s_upsample, 165)                                                                                                   \
  X(popcount, 166)                                                                                                     \
  X(s_mad24, 167)                                                                                                      \
  X(u_mad24, 168)                                                                                                      \
  X(s_mul24, 169)                                                                                                      \
  X(u_mul24, 170)                                                                                                      \
  X(vloadn, 171)                                                                                                       \
  X(vstoren, 172)                                                                                                      \
  X(vload_half, 173)                                                                                                   \
  X(vload_halfn, 174)                                                                                                  \
  X(vstore_half, 175)                                                                                                  \
  X(vstore_half_r, 176)                                                                                                \
  X(vstore_halfn, 177)                                                                                                 \
  X(vstore_halfn_r, 178)                                                                                               \
  X(vloada_halfn, 179)                                                                                                 \
  X(vstorea_halfn, 180)                                                                                                \
  X(vstorea_halfn_r, 181)                                                                                              \
  X(shuffle, 182)                                                                                                      \
  X(shuffle2, 183)                                                                                                     \
  X(printf, 184)                                                                                                       \
  X(prefetch, 185)                                                                                                     \
  X(bitselect, 186)                                                                                                    \
  X(select, 187)                                                                                                       \
  X(u_abs, 201)                                                                                                        \
  X(u_abs_diff, 202)                                                                                                   \
  X(u_mul_hi, 203)                                                                                                     \
  X(u_mad_hi, 204)

#define SPIRV_CL(name, number) CL_##name = number,
enum { SPIRV_OPENCL(SPIRV_CL) };

enum { /* kinds of images */
       DimBuffer = 5,
       Dim3D = 2,
};

enum { /* storage classes */
       StorageUniformConstant = 0,
       StorageInput = 1,
       StorageWorkgroup = 4,
       StorageCrossWorkgroup = 5,
       StorageFunction = 7,
       StorageGeneric = 8,
};

enum { /* decorations */
       DecorationSpecId = 1,
       DecorationCPacked = 10,
       DecorationBuiltIn = 11,
       DecorationNonWritable = 24,
       DecorationNonReadable = 25,
       DecorationAlignment = 44,
       DecorationFuncParamAttr = 38,
       DecorationLinkageAttributes = 41,
       LinkageExport = 0,
       LinkageImport = 1,
       LinkageLinkOnceODR = 2,
       FuncParamByVal = 2,
       FuncParamNoWrite = 6,
};

enum { /* execution modes */
       ModeLocalSize = 17,
       ModeLocalSizeHint = 18,
       ModeVecTypeHint = 30,
       ModeContractionOff = 31,
       ModeSubgroupSize = 35,
       ModeLocalSizeId = 38,
       ModeLocalSizeHintId = 39,
       ModeDenormPreserve = 4459,
       ModeSignedZeroPreserve = 4461,
       ModeRoundingRTE = 4462,
       ModeFloatingPointIEEE = 5623,
       ModeMaxWorkgroupSizeINTEL = 5893,
       ModeMaxWorkDimINTEL = 5894,
       ModeNoGlobalOffset = 5895,
       ModeNumSIMDItemsINTEL = 5896,
       ModeSchedulerTargetMhzINTEL = 5903,
       ModeStreamingInterfaceINTEL = 6154,
       ModeRegisterMapINTEL = 6160,
       ModeNamedBarriers = 6417,
       ModeMaximumRegistersINTEL = 6461,
       ModeNamedMaximumRegistersINTEL = 6463,
};

enum { /* built-in variables */
       BuiltInNumWorkgroups = 24,
       BuiltInWorkgroupSize = 25,
       BuiltInWorkgroupId = 26,
       BuiltInLocalInvocationId = 27,
       BuiltInGlobalInvocationId = 28,
       BuiltInLocalInvocationIndex = 29,
       BuiltInWorkDim = 30,
       BuiltInGlobalSize = 31,
       BuiltInEnqueuedWorkgroupSize = 32,
       BuiltInGlobalOffset = 33,
       BuiltInGlobalLinearId = 34,
       BuiltInSubgroupSize = 36,
       BuiltInSubgroupMaxSize = 37,
       BuiltInNumSubgroups = 38,
       BuiltInNumEnqueuedSubgroups = 39,
       BuiltInSubgroupId = 40,
       BuiltInSubgroupLocalInvocationId = 41,
};

enum { ScopeDevice = 1, ScopeWorkgroup = 2, ScopeSubgroup = 3 };
enum { GroupReduce = 0, GroupInclusiveScan = 1, GroupExclusiveScan = 2, GroupClustered = 3 };
enum {
  RoundingRTE = 0,
  RoundingRTZ = 1,
  RoundingRTP = 2,
  RoundingRTN = 3,
  DecorationFPRoundingMode = 39,
  DecorationSaturated = 28
};

#endif
