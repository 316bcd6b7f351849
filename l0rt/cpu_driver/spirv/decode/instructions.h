/* SPDX-License-Identifier: Apache-2.0 */
/* instructions.h: the instructions and capabilities of the public grammar of SPIR-V (unified1, 1.6 revision 4 with its
 * extensions) that are not in grammar.h: the engine does not run them, but a module with them can be read.
 *
 * Patterns are written as in grammar.h. "!" marks what only shaders may have, as all its capabilities need Shader. An
 * instruction that the engine learns to run moves to grammar.h. */
#ifndef L0RT_CPU_SPIRV_INSTRUCTIONS_H
#define L0RT_CPU_SPIRV_INSTRUCTIONS_H

/* clang-format off */
#define SPIRV_OTHER_INSTRUCTIONS(X) \
  X(TypeMatrix, 24, "!") X(TypeRuntimeArray, 29, "!") X(TypeDeviceEvent, 35, "R") X(TypeReserveId, 36, "R") \
  X(TypeQueue, 37, "R") X(TypePipe, 38, "Rn") X(ImageTexelPointer, 60, "TRiii") X(ArrayLength, 68, "!") \
  X(Transpose, 84, "!") X(ImageSampleImplicitLod, 87, "!") X(ImageSampleDrefImplicitLod, 89, "!") \
  X(ImageSampleDrefExplicitLod, 90, "!") X(ImageSampleProjImplicitLod, 91, "!") \
  X(ImageSampleProjExplicitLod, 92, "!") X(ImageSampleProjDrefImplicitLod, 93, "!") \
  X(ImageSampleProjDrefExplicitLod, 94, "!") X(ImageFetch, 95, "TRii?#") X(ImageGather, 96, "!") \
  X(ImageDrefGather, 97, "!") X(ImageQueryLod, 105, "!") X(QuantizeToF16, 116, "!") X(MatrixTimesScalar, 143, "!") \
  X(VectorTimesMatrix, 144, "!") X(MatrixTimesVector, 145, "!") X(MatrixTimesMatrix, 146, "!") \
  X(OuterProduct, 147, "!") X(DPdx, 207, "!") X(DPdy, 208, "!") X(Fwidth, 209, "!") X(DPdxFine, 210, "!") \
  X(DPdyFine, 211, "!") X(FwidthFine, 212, "!") X(DPdxCoarse, 213, "!") X(DPdyCoarse, 214, "!") \
  X(FwidthCoarse, 215, "!") X(EmitVertex, 218, "!") X(EndPrimitive, 219, "!") X(EmitStreamVertex, 220, "!") \
  X(EndStreamPrimitive, 221, "!") X(Kill, 252, "!") X(ReadPipe, 274, "TRiiii") X(WritePipe, 275, "TRiiii") \
  X(ReservedReadPipe, 276, "TRiiiiii") X(ReservedWritePipe, 277, "TRiiiiii") X(ReserveReadPipePackets, 278, "TRiiii") \
  X(ReserveWritePipePackets, 279, "TRiiii") X(CommitReadPipe, 280, "iiii") X(CommitWritePipe, 281, "iiii") \
  X(IsValidReserveId, 282, "TRi") X(GetNumPipePackets, 283, "TRiii") X(GetMaxPipePackets, 284, "TRiii") \
  X(GroupReserveReadPipePackets, 285, "TRiiiii") X(GroupReserveWritePipePackets, 286, "TRiiiii") \
  X(GroupCommitReadPipe, 287, "iiiii") X(GroupCommitWritePipe, 288, "iiiii") X(EnqueueMarker, 291, "TRiiii") \
  X(EnqueueKernel, 292, "TRiiiiiiiiii?*") X(GetKernelNDrangeSubGroupCount, 293, "TRiiiii") \
  X(GetKernelNDrangeMaxSubGroupSize, 294, "TRiiiii") X(GetKernelWorkGroupSize, 295, "TRiiii") \
  X(GetKernelPreferredWorkGroupSizeMultiple, 296, "TRiiii") X(RetainEvent, 297, "i") X(ReleaseEvent, 298, "i") \
  X(CreateUserEvent, 299, "TR") X(IsValidEvent, 300, "TRi") X(SetUserEventStatus, 301, "ii") \
  X(CaptureEventProfilingInfo, 302, "iii") X(GetDefaultQueue, 303, "TR") X(BuildNDRange, 304, "TRiii") \
  X(ImageSparseSampleImplicitLod, 305, "!") X(ImageSparseSampleExplicitLod, 306, "!") \
  X(ImageSparseSampleDrefImplicitLod, 307, "!") X(ImageSparseSampleDrefExplicitLod, 308, "!") \
  X(ImageSparseSampleProjImplicitLod, 309, "!") X(ImageSparseSampleProjExplicitLod, 310, "!") \
  X(ImageSparseSampleProjDrefImplicitLod, 311, "!") X(ImageSparseSampleProjDrefExplicitLod, 312, "!") \
  X(ImageSparseFetch, 313, "!") X(ImageSparseGather, 314, "!") X(ImageSparseDrefGather, 315, "!") \
  X(ImageSparseTexelsResident, 316, "!") X(ImageSparseRead, 320, "!") X(SizeOf, 321, "TRi") \
  X(TypePipeStorage, 322, "R") X(ConstantPipeStorage, 323, "TRnnn") X(CreatePipeFromPipeStorage, 324, "TRi") \
  X(GetKernelLocalSizeForSubgroupCount, 325, "TRiiiii") X(GetKernelMaxNumSubgroups, 326, "TRiiii") \
  X(TypeNamedBarrier, 327, "R") X(NamedBarrierInitialize, 328, "TRi") X(MemoryNamedBarrier, 329, "iii") \
  X(GroupNonUniformQuadBroadcast, 365, "TRiii") X(GroupNonUniformQuadSwap, 366, "TRiii") \
  X(ColorAttachmentReadEXT, 4160, "TRi?i") X(DepthAttachmentReadEXT, 4161, "TR?i") \
  X(StencilAttachmentReadEXT, 4162, "TR?i") X(TypeTensorARM, 4163, "Ri?ii") X(TensorReadARM, 4164, "TRii?#") \
  X(TensorWriteARM, 4165, "iii?#") X(TensorQuerySizeARM, 4166, "TRii") X(GraphConstantARM, 4181, "TRn") \
  X(GraphEntryPointARM, 4182, "is?*") X(GraphARM, 4183, "TR") X(GraphInputARM, 4184, "TRi?*") \
  X(GraphSetOutputARM, 4185, "ii?*") X(GraphEndARM, 4186, "") X(TypeGraphARM, 4190, "Rn?*") \
  X(TerminateInvocation, 4416, "!") X(TypeUntypedPointerKHR, 4417, "Rn") X(UntypedVariableKHR, 4418, "TRn?ii") \
  X(UntypedAccessChainKHR, 4419, "TRii?*") X(UntypedInBoundsAccessChainKHR, 4420, "TRii?*") \
  X(SubgroupBallotKHR, 4421, "TRi") X(SubgroupFirstInvocationKHR, 4422, "TRi") \
  X(UntypedPtrAccessChainKHR, 4423, "TRiii?*") X(UntypedInBoundsPtrAccessChainKHR, 4424, "TRiii?*") \
  X(UntypedArrayLengthKHR, 4425, "TRiin") X(UntypedPrefetchKHR, 4426, "ii?iii") X(FmaKHR, 4427, "TRiii") \
  X(SubgroupAllKHR, 4428, "TRi") X(SubgroupAnyKHR, 4429, "TRi") X(SubgroupAllEqualKHR, 4430, "TRi") \
  X(SubgroupReadInvocationKHR, 4432, "TRii") X(ExtInstWithForwardRefsKHR, 4433, "TRin?#") \
  X(UntypedGroupAsyncCopyKHR, 4434, "TRiiiiiii?#") X(TraceRayKHR, 4445, "!") X(ExecuteCallableKHR, 4446, "!") \
  X(ConvertUToAccelerationStructureKHR, 4447, "!") X(IgnoreIntersectionKHR, 4448, "!") X(TerminateRayKHR, 4449, "!") \
  X(TypeCooperativeMatrixKHR, 4456, "Riiiii") X(CooperativeMatrixLoadKHR, 4457, "TRii?i#") \
  X(CooperativeMatrixStoreKHR, 4458, "iii?i#") X(CooperativeMatrixMulAddKHR, 4459, "TRiii?#") \
  X(CooperativeMatrixLengthKHR, 4460, "TRi") X(ConstantCompositeReplicateEXT, 4461, "TRi") \
  X(SpecConstantCompositeReplicateEXT, 4462, "TRi") X(CompositeConstructReplicateEXT, 4463, "TRi") \
  X(TypeRayQueryKHR, 4472, "!") X(RayQueryInitializeKHR, 4473, "!") X(RayQueryTerminateKHR, 4474, "!") \
  X(RayQueryGenerateIntersectionKHR, 4475, "!") X(RayQueryConfirmIntersectionKHR, 4476, "!") \
  X(RayQueryProceedKHR, 4477, "!") X(RayQueryGetIntersectionTypeKHR, 4479, "!") \
  X(ImageSampleWeightedQCOM, 4480, "TRiii") X(ImageBoxFilterQCOM, 4481, "TRiii") \
  X(ImageBlockMatchSSDQCOM, 4482, "TRiiiii") X(ImageBlockMatchSADQCOM, 4483, "TRiiiii") \
  X(BitCastArrayQCOM, 4497, "TRi") X(ImageBlockMatchWindowSSDQCOM, 4500, "TRiiiii") \
  X(ImageBlockMatchWindowSADQCOM, 4501, "TRiiiii") X(ImageBlockMatchGatherSSDQCOM, 4502, "TRiiiii") \
  X(ImageBlockMatchGatherSADQCOM, 4503, "TRiiiii") X(CompositeConstructCoopMatQCOM, 4540, "TRi") \
  X(CompositeExtractCoopMatQCOM, 4541, "TRi") X(ExtractSubArrayQCOM, 4542, "TRii") \
  X(GroupIAddNonUniformAMD, 5000, "TRini") X(GroupFAddNonUniformAMD, 5001, "TRini") \
  X(GroupFMinNonUniformAMD, 5002, "TRini") X(GroupUMinNonUniformAMD, 5003, "TRini") \
  X(GroupSMinNonUniformAMD, 5004, "TRini") X(GroupFMaxNonUniformAMD, 5005, "TRini") \
  X(GroupUMaxNonUniformAMD, 5006, "TRini") X(GroupSMaxNonUniformAMD, 5007, "TRini") \
  X(FragmentMaskFetchAMD, 5011, "!") X(FragmentFetchAMD, 5012, "!") X(ReadClockKHR, 5056, "TRi") \
  X(AllocateNodePayloadsAMDX, 5074, "!") X(EnqueueNodePayloadsAMDX, 5075, "!") X(TypeNodePayloadArrayAMDX, 5076, "!") \
  X(FinishWritingNodePayloadAMDX, 5078, "!") X(NodePayloadArrayLengthAMDX, 5090, "!") \
  X(IsNodePayloadValidAMDX, 5101, "!") X(ConstantStringAMDX, 5103, "!") X(SpecConstantStringAMDX, 5104, "!") \
  X(GroupNonUniformQuadAllKHR, 5110, "TRi") X(GroupNonUniformQuadAnyKHR, 5111, "TRi") \
  X(HitObjectRecordHitMotionNV, 5249, "!") X(HitObjectRecordHitWithIndexMotionNV, 5250, "!") \
  X(HitObjectRecordMissMotionNV, 5251, "!") X(HitObjectGetWorldToObjectNV, 5252, "!") \
  X(HitObjectGetObjectToWorldNV, 5253, "!") X(HitObjectGetObjectRayDirectionNV, 5254, "!") \
  X(HitObjectGetObjectRayOriginNV, 5255, "!") X(HitObjectTraceRayMotionNV, 5256, "!") \
  X(HitObjectGetShaderRecordBufferHandleNV, 5257, "!") X(HitObjectGetShaderBindingTableRecordIndexNV, 5258, "!") \
  X(HitObjectRecordEmptyNV, 5259, "!") X(HitObjectTraceRayNV, 5260, "!") X(HitObjectRecordHitNV, 5261, "!") \
  X(HitObjectRecordHitWithIndexNV, 5262, "!") X(HitObjectRecordMissNV, 5263, "!") \
  X(HitObjectExecuteShaderNV, 5264, "!") X(HitObjectGetCurrentTimeNV, 5265, "!") \
  X(HitObjectGetAttributesNV, 5266, "!") X(HitObjectGetHitKindNV, 5267, "!") \
  X(HitObjectGetPrimitiveIndexNV, 5268, "!") X(HitObjectGetGeometryIndexNV, 5269, "!") \
  X(HitObjectGetInstanceIdNV, 5270, "!") X(HitObjectGetInstanceCustomIndexNV, 5271, "!") \
  X(HitObjectGetWorldRayDirectionNV, 5272, "!") X(HitObjectGetWorldRayOriginNV, 5273, "!") \
  X(HitObjectGetRayTMaxNV, 5274, "!") X(HitObjectGetRayTMinNV, 5275, "!") X(HitObjectIsEmptyNV, 5276, "!") \
  X(HitObjectIsHitNV, 5277, "!") X(HitObjectIsMissNV, 5278, "!") X(ReorderThreadWithHitObjectNV, 5279, "!") \
  X(ReorderThreadWithHintNV, 5280, "!") X(TypeHitObjectNV, 5281, "!") X(ImageSampleFootprintNV, 5283, "TRiiii?#") \
  X(TypeCooperativeVectorNV, 5288, "Rii") X(CooperativeVectorMatrixMulNV, 5289, "TRiiiiiiiii?i#") \
  X(CooperativeVectorOuterProductAccumulateNV, 5290, "iiiiii?i") \
  X(CooperativeVectorReduceSumAccumulateNV, 5291, "iii") \
  X(CooperativeVectorMatrixMulAddNV, 5292, "TRiiiiiiiiiiii?i#") X(CooperativeMatrixConvertNV, 5293, "TRi") \
  X(EmitMeshTasksEXT, 5294, "!") X(SetMeshOutputsEXT, 5295, "!") X(GroupNonUniformPartitionNV, 5296, "TRi") \
  X(WritePackedPrimitiveIndices4x8NV, 5299, "!") X(FetchMicroTriangleVertexPositionNV, 5300, "!") \
  X(FetchMicroTriangleVertexBarycentricNV, 5301, "!") X(CooperativeVectorLoadNV, 5302, "TRii?#") \
  X(CooperativeVectorStoreNV, 5303, "iii?#") X(HitObjectRecordFromQueryEXT, 5304, "!") \
  X(HitObjectRecordMissEXT, 5305, "!") X(HitObjectRecordMissMotionEXT, 5306, "!") \
  X(HitObjectGetIntersectionTriangleVertexPositionsEXT, 5307, "!") X(HitObjectGetRayFlagsEXT, 5308, "!") \
  X(HitObjectSetShaderBindingTableRecordIndexEXT, 5309, "!") X(HitObjectReorderExecuteShaderEXT, 5310, "!") \
  X(HitObjectTraceReorderExecuteEXT, 5311, "!") X(HitObjectTraceMotionReorderExecuteEXT, 5312, "!") \
  X(TypeHitObjectEXT, 5313, "!") X(ReorderThreadWithHintEXT, 5314, "!") X(ReorderThreadWithHitObjectEXT, 5315, "!") \
  X(HitObjectTraceRayEXT, 5316, "!") X(HitObjectTraceRayMotionEXT, 5317, "!") X(HitObjectRecordEmptyEXT, 5318, "!") \
  X(HitObjectExecuteShaderEXT, 5319, "!") X(HitObjectGetCurrentTimeEXT, 5320, "!") \
  X(HitObjectGetAttributesEXT, 5321, "!") X(HitObjectGetHitKindEXT, 5322, "!") \
  X(HitObjectGetPrimitiveIndexEXT, 5323, "!") X(HitObjectGetGeometryIndexEXT, 5324, "!") \
  X(HitObjectGetInstanceIdEXT, 5325, "!") X(HitObjectGetInstanceCustomIndexEXT, 5326, "!") \
  X(HitObjectGetObjectRayOriginEXT, 5327, "!") X(HitObjectGetObjectRayDirectionEXT, 5328, "!") \
  X(HitObjectGetWorldRayDirectionEXT, 5329, "!") X(HitObjectGetWorldRayOriginEXT, 5330, "!") \
  X(HitObjectGetObjectToWorldEXT, 5331, "!") X(HitObjectGetWorldToObjectEXT, 5332, "!") \
  X(HitObjectGetRayTMaxEXT, 5333, "!") X(ReportIntersectionKHR, 5334, "!") X(IgnoreIntersectionNV, 5335, "!") \
  X(TerminateRayNV, 5336, "!") X(TraceNV, 5337, "!") X(TraceMotionNV, 5338, "!") X(TraceRayMotionNV, 5339, "!") \
  X(RayQueryGetIntersectionTriangleVertexPositionsKHR, 5340, "!") X(TypeAccelerationStructureKHR, 5341, "!") \
  X(ExecuteCallableNV, 5344, "!") X(RayQueryGetIntersectionClusterIdNV, 5345, "!") \
  X(HitObjectGetClusterIdNV, 5346, "!") X(HitObjectGetRayTMinEXT, 5347, "!") \
  X(HitObjectGetShaderBindingTableRecordIndexEXT, 5348, "!") X(HitObjectGetShaderRecordBufferHandleEXT, 5349, "!") \
  X(HitObjectIsEmptyEXT, 5350, "!") X(HitObjectIsHitEXT, 5351, "!") X(HitObjectIsMissEXT, 5352, "!") \
  X(TypeCooperativeMatrixNV, 5358, "!") X(CooperativeMatrixLoadNV, 5359, "!") X(CooperativeMatrixStoreNV, 5360, "!") \
  X(CooperativeMatrixMulAddNV, 5361, "!") X(CooperativeMatrixLengthNV, 5362, "!") \
  X(BeginInvocationInterlockEXT, 5364, "!") X(EndInvocationInterlockEXT, 5365, "!") \
  X(CooperativeMatrixReduceNV, 5366, "TRini") X(CooperativeMatrixLoadTensorNV, 5367, "TRiiin?#") \
  X(CooperativeMatrixStoreTensorNV, 5368, "iiin?#") X(CooperativeMatrixPerElementOpNV, 5369, "TRii?*") \
  X(TypeTensorLayoutNV, 5370, "Rii") X(TypeTensorViewNV, 5371, "Rii?*") X(CreateTensorLayoutNV, 5372, "TR") \
  X(TensorLayoutSetDimensionNV, 5373, "TRi?*") X(TensorLayoutSetStrideNV, 5374, "TRi?*") \
  X(TensorLayoutSliceNV, 5375, "TRi?*") X(TensorLayoutSetClampValueNV, 5376, "TRii") \
  X(CreateTensorViewNV, 5377, "TR") X(TensorViewSetDimensionNV, 5378, "TRi?*") \
  X(TensorViewSetStrideNV, 5379, "TRi?*") X(DemoteToHelperInvocation, 5380, "!") X(IsHelperInvocationEXT, 5381, "!") \
  X(TensorViewSetClipNV, 5382, "TRiiiii") X(TensorLayoutSetBlockSizeNV, 5384, "TRi?*") \
  X(CooperativeMatrixTransposeNV, 5390, "TRi") X(ConvertUToImageNV, 5391, "TRi") X(ConvertUToSamplerNV, 5392, "TRi") \
  X(ConvertImageToUNV, 5393, "TRi") X(ConvertSamplerToUNV, 5394, "TRi") X(ConvertUToSampledImageNV, 5395, "TRi") \
  X(ConvertSampledImageToUNV, 5396, "TRi") X(SamplerImageAddressingModeNV, 5397, "n") \
  X(RawAccessChainNV, 5398, "TRiiii?#") X(RayQueryGetIntersectionSpherePositionNV, 5427, "TRii") \
  X(RayQueryGetIntersectionSphereRadiusNV, 5428, "TRii") X(RayQueryGetIntersectionLSSPositionsNV, 5429, "TRii") \
  X(RayQueryGetIntersectionLSSRadiiNV, 5430, "TRii") X(RayQueryGetIntersectionLSSHitValueNV, 5431, "TRii") \
  X(HitObjectGetSpherePositionNV, 5432, "TRi") X(HitObjectGetSphereRadiusNV, 5433, "TRi") \
  X(HitObjectGetLSSPositionsNV, 5434, "TRi") X(HitObjectGetLSSRadiiNV, 5435, "TRi") \
  X(HitObjectIsSphereHitNV, 5436, "TRi") X(HitObjectIsLSSHitNV, 5437, "TRi") X(RayQueryIsSphereHitNV, 5438, "TRii") \
  X(RayQueryIsLSSHitNV, 5439, "TRii") X(SubgroupImageBlockReadINTEL, 5577, "TRii") \
  X(SubgroupImageBlockWriteINTEL, 5578, "iii") X(SubgroupImageMediaBlockReadINTEL, 5580, "TRiiii") \
  X(SubgroupImageMediaBlockWriteINTEL, 5581, "iiiii") X(UCountLeadingZerosINTEL, 5585, "TRi") \
  X(UCountTrailingZerosINTEL, 5586, "TRi") X(AbsISubINTEL, 5587, "TRii") X(AbsUSubINTEL, 5588, "TRii") \
  X(IAddSatINTEL, 5589, "TRii") X(UAddSatINTEL, 5590, "TRii") X(IAverageINTEL, 5591, "TRii") \
  X(UAverageINTEL, 5592, "TRii") X(IAverageRoundedINTEL, 5593, "TRii") X(UAverageRoundedINTEL, 5594, "TRii") \
  X(ISubSatINTEL, 5595, "TRii") X(USubSatINTEL, 5596, "TRii") X(IMul32x16INTEL, 5597, "TRii") \
  X(UMul32x16INTEL, 5598, "TRii") X(ConstantFunctionPointerINTEL, 5600, "TRi") \
  X(FunctionPointerCallINTEL, 5601, "TR?*") X(AsmTargetINTEL, 5609, "Rs") X(AsmINTEL, 5610, "TRiiss") \
  X(AsmCallINTEL, 5611, "TRi?*") X(MemberDecorateString, 5633, "inn?#") X(VmeImageINTEL, 5699, "TRii") \
  X(TypeVmeImageINTEL, 5700, "Ri") X(TypeAvcImePayloadINTEL, 5701, "R") X(TypeAvcRefPayloadINTEL, 5702, "R") \
  X(TypeAvcSicPayloadINTEL, 5703, "R") X(TypeAvcMcePayloadINTEL, 5704, "R") X(TypeAvcMceResultINTEL, 5705, "R") \
  X(TypeAvcImeResultINTEL, 5706, "R") X(TypeAvcImeResultSingleReferenceStreamoutINTEL, 5707, "R") \
  X(TypeAvcImeResultDualReferenceStreamoutINTEL, 5708, "R") X(TypeAvcImeSingleReferenceStreaminINTEL, 5709, "R") \
  X(TypeAvcImeDualReferenceStreaminINTEL, 5710, "R") X(TypeAvcRefResultINTEL, 5711, "R") \
  X(TypeAvcSicResultINTEL, 5712, "R") X(SubgroupAvcMceGetDefaultInterBaseMultiReferencePenaltyINTEL, 5713, "TRii") \
  X(SubgroupAvcMceSetInterBaseMultiReferencePenaltyINTEL, 5714, "TRii") \
  X(SubgroupAvcMceGetDefaultInterShapePenaltyINTEL, 5715, "TRii") \
  X(SubgroupAvcMceSetInterShapePenaltyINTEL, 5716, "TRii") \
  X(SubgroupAvcMceGetDefaultInterDirectionPenaltyINTEL, 5717, "TRii") \
  X(SubgroupAvcMceSetInterDirectionPenaltyINTEL, 5718, "TRii") \
  X(SubgroupAvcMceGetDefaultIntraLumaShapePenaltyINTEL, 5719, "TRii") \
  X(SubgroupAvcMceGetDefaultInterMotionVectorCostTableINTEL, 5720, "TRii") \
  X(SubgroupAvcMceGetDefaultHighPenaltyCostTableINTEL, 5721, "TR") \
  X(SubgroupAvcMceGetDefaultMediumPenaltyCostTableINTEL, 5722, "TR") \
  X(SubgroupAvcMceGetDefaultLowPenaltyCostTableINTEL, 5723, "TR") \
  X(SubgroupAvcMceSetMotionVectorCostFunctionINTEL, 5724, "TRiiii") \
  X(SubgroupAvcMceGetDefaultIntraLumaModePenaltyINTEL, 5725, "TRii") \
  X(SubgroupAvcMceGetDefaultNonDcLumaIntraPenaltyINTEL, 5726, "TR") \
  X(SubgroupAvcMceGetDefaultIntraChromaModeBasePenaltyINTEL, 5727, "TR") \
  X(SubgroupAvcMceSetAcOnlyHaarINTEL, 5728, "TRi") \
  X(SubgroupAvcMceSetSourceInterlacedFieldPolarityINTEL, 5729, "TRii") \
  X(SubgroupAvcMceSetSingleReferenceInterlacedFieldPolarityINTEL, 5730, "TRii") \
  X(SubgroupAvcMceSetDualReferenceInterlacedFieldPolaritiesINTEL, 5731, "TRiii") \
  X(SubgroupAvcMceConvertToImePayloadINTEL, 5732, "TRi") X(SubgroupAvcMceConvertToImeResultINTEL, 5733, "TRi") \
  X(SubgroupAvcMceConvertToRefPayloadINTEL, 5734, "TRi") X(SubgroupAvcMceConvertToRefResultINTEL, 5735, "TRi") \
  X(SubgroupAvcMceConvertToSicPayloadINTEL, 5736, "TRi") X(SubgroupAvcMceConvertToSicResultINTEL, 5737, "TRi") \
  X(SubgroupAvcMceGetMotionVectorsINTEL, 5738, "TRi") X(SubgroupAvcMceGetInterDistortionsINTEL, 5739, "TRi") \
  X(SubgroupAvcMceGetBestInterDistortionsINTEL, 5740, "TRi") X(SubgroupAvcMceGetInterMajorShapeINTEL, 5741, "TRi") \
  X(SubgroupAvcMceGetInterMinorShapeINTEL, 5742, "TRi") X(SubgroupAvcMceGetInterDirectionsINTEL, 5743, "TRi") \
  X(SubgroupAvcMceGetInterMotionVectorCountINTEL, 5744, "TRi") \
  X(SubgroupAvcMceGetInterReferenceIdsINTEL, 5745, "TRi") \
  X(SubgroupAvcMceGetInterReferenceInterlacedFieldPolaritiesINTEL, 5746, "TRiii") \
  X(SubgroupAvcImeInitializeINTEL, 5747, "TRiii") X(SubgroupAvcImeSetSingleReferenceINTEL, 5748, "TRiii") \
  X(SubgroupAvcImeSetDualReferenceINTEL, 5749, "TRiiii") X(SubgroupAvcImeRefWindowSizeINTEL, 5750, "TRii") \
  X(SubgroupAvcImeAdjustRefOffsetINTEL, 5751, "TRiiii") X(SubgroupAvcImeConvertToMcePayloadINTEL, 5752, "TRi") \
  X(SubgroupAvcImeSetMaxMotionVectorCountINTEL, 5753, "TRii") \
  X(SubgroupAvcImeSetUnidirectionalMixDisableINTEL, 5754, "TRi") \
  X(SubgroupAvcImeSetEarlySearchTerminationThresholdINTEL, 5755, "TRii") \
  X(SubgroupAvcImeSetWeightedSadINTEL, 5756, "TRii") X(SubgroupAvcImeEvaluateWithSingleReferenceINTEL, 5757, "TRiii") \
  X(SubgroupAvcImeEvaluateWithDualReferenceINTEL, 5758, "TRiiii") \
  X(SubgroupAvcImeEvaluateWithSingleReferenceStreaminINTEL, 5759, "TRiiii") \
  X(SubgroupAvcImeEvaluateWithDualReferenceStreaminINTEL, 5760, "TRiiiii") \
  X(SubgroupAvcImeEvaluateWithSingleReferenceStreamoutINTEL, 5761, "TRiii") \
  X(SubgroupAvcImeEvaluateWithDualReferenceStreamoutINTEL, 5762, "TRiiii") \
  X(SubgroupAvcImeEvaluateWithSingleReferenceStreaminoutINTEL, 5763, "TRiiii") \
  X(SubgroupAvcImeEvaluateWithDualReferenceStreaminoutINTEL, 5764, "TRiiiii") \
  X(SubgroupAvcImeConvertToMceResultINTEL, 5765, "TRi") X(SubgroupAvcImeGetSingleReferenceStreaminINTEL, 5766, "TRi") \
  X(SubgroupAvcImeGetDualReferenceStreaminINTEL, 5767, "TRi") \
  X(SubgroupAvcImeStripSingleReferenceStreamoutINTEL, 5768, "TRi") \
  X(SubgroupAvcImeStripDualReferenceStreamoutINTEL, 5769, "TRi") \
  X(SubgroupAvcImeGetStreamoutSingleReferenceMajorShapeMotionVectorsINTEL, 5770, "TRii") \
  X(SubgroupAvcImeGetStreamoutSingleReferenceMajorShapeDistortionsINTEL, 5771, "TRii") \
  X(SubgroupAvcImeGetStreamoutSingleReferenceMajorShapeReferenceIdsINTEL, 5772, "TRii") \
  X(SubgroupAvcImeGetStreamoutDualReferenceMajorShapeMotionVectorsINTEL, 5773, "TRiii") \
  X(SubgroupAvcImeGetStreamoutDualReferenceMajorShapeDistortionsINTEL, 5774, "TRiii") \
  X(SubgroupAvcImeGetStreamoutDualReferenceMajorShapeReferenceIdsINTEL, 5775, "TRiii") \
  X(SubgroupAvcImeGetBorderReachedINTEL, 5776, "TRii") \
  X(SubgroupAvcImeGetTruncatedSearchIndicationINTEL, 5777, "TRi") \
  X(SubgroupAvcImeGetUnidirectionalEarlySearchTerminationINTEL, 5778, "TRi") \
  X(SubgroupAvcImeGetWeightingPatternMinimumMotionVectorINTEL, 5779, "TRi") \
  X(SubgroupAvcImeGetWeightingPatternMinimumDistortionINTEL, 5780, "TRi") \
  X(SubgroupAvcFmeInitializeINTEL, 5781, "TRiiiiiii") X(SubgroupAvcBmeInitializeINTEL, 5782, "TRiiiiiiii") \
  X(SubgroupAvcRefConvertToMcePayloadINTEL, 5783, "TRi") \
  X(SubgroupAvcRefSetBidirectionalMixDisableINTEL, 5784, "TRi") \
  X(SubgroupAvcRefSetBilinearFilterEnableINTEL, 5785, "TRi") \
  X(SubgroupAvcRefEvaluateWithSingleReferenceINTEL, 5786, "TRiii") \
  X(SubgroupAvcRefEvaluateWithDualReferenceINTEL, 5787, "TRiiii") \
  X(SubgroupAvcRefEvaluateWithMultiReferenceINTEL, 5788, "TRiii") \
  X(SubgroupAvcRefEvaluateWithMultiReferenceInterlacedINTEL, 5789, "TRiiii") \
  X(SubgroupAvcRefConvertToMceResultINTEL, 5790, "TRi") X(SubgroupAvcSicInitializeINTEL, 5791, "TRi") \
  X(SubgroupAvcSicConfigureSkcINTEL, 5792, "TRiiiiii") X(SubgroupAvcSicConfigureIpeLumaINTEL, 5793, "TRiiiiiiii") \
  X(SubgroupAvcSicConfigureIpeLumaChromaINTEL, 5794, "TRiiiiiiiiiii") \
  X(SubgroupAvcSicGetMotionVectorMaskINTEL, 5795, "TRii") X(SubgroupAvcSicConvertToMcePayloadINTEL, 5796, "TRi") \
  X(SubgroupAvcSicSetIntraLumaShapePenaltyINTEL, 5797, "TRii") \
  X(SubgroupAvcSicSetIntraLumaModeCostFunctionINTEL, 5798, "TRiiii") \
  X(SubgroupAvcSicSetIntraChromaModeCostFunctionINTEL, 5799, "TRii") \
  X(SubgroupAvcSicSetBilinearFilterEnableINTEL, 5800, "TRi") \
  X(SubgroupAvcSicSetSkcForwardTransformEnableINTEL, 5801, "TRii") \
  X(SubgroupAvcSicSetBlockBasedRawSkipSadINTEL, 5802, "TRii") X(SubgroupAvcSicEvaluateIpeINTEL, 5803, "TRii") \
  X(SubgroupAvcSicEvaluateWithSingleReferenceINTEL, 5804, "TRiii") \
  X(SubgroupAvcSicEvaluateWithDualReferenceINTEL, 5805, "TRiiii") \
  X(SubgroupAvcSicEvaluateWithMultiReferenceINTEL, 5806, "TRiii") \
  X(SubgroupAvcSicEvaluateWithMultiReferenceInterlacedINTEL, 5807, "TRiiii") \
  X(SubgroupAvcSicConvertToMceResultINTEL, 5808, "TRi") X(SubgroupAvcSicGetIpeLumaShapeINTEL, 5809, "TRi") \
  X(SubgroupAvcSicGetBestIpeLumaDistortionINTEL, 5810, "TRi") \
  X(SubgroupAvcSicGetBestIpeChromaDistortionINTEL, 5811, "TRi") \
  X(SubgroupAvcSicGetPackedIpeLumaModesINTEL, 5812, "TRi") X(SubgroupAvcSicGetIpeChromaModeINTEL, 5813, "TRi") \
  X(SubgroupAvcSicGetPackedSkcLumaCountThresholdINTEL, 5814, "TRi") \
  X(SubgroupAvcSicGetPackedSkcLumaSumThresholdINTEL, 5815, "TRi") X(SubgroupAvcSicGetInterRawSadsINTEL, 5816, "TRi") \
  X(VariableLengthArrayINTEL, 5818, "TRi") X(SaveMemoryINTEL, 5819, "TR") X(RestoreMemoryINTEL, 5820, "i") \
  X(ArbitraryFloatSinCosPiALTERA, 5840, "TRinnnnn") X(ArbitraryFloatCastALTERA, 5841, "TRinnnnn") \
  X(ArbitraryFloatCastFromIntALTERA, 5842, "TRinnnnn") X(ArbitraryFloatCastToIntALTERA, 5843, "TRinnnnn") \
  X(ArbitraryFloatAddALTERA, 5846, "TRininnnnn") X(ArbitraryFloatSubALTERA, 5847, "TRininnnnn") \
  X(ArbitraryFloatMulALTERA, 5848, "TRininnnnn") X(ArbitraryFloatDivALTERA, 5849, "TRininnnnn") \
  X(ArbitraryFloatGTALTERA, 5850, "TRinin") X(ArbitraryFloatGEALTERA, 5851, "TRinin") \
  X(ArbitraryFloatLTALTERA, 5852, "TRinin") X(ArbitraryFloatLEALTERA, 5853, "TRinin") \
  X(ArbitraryFloatEQALTERA, 5854, "TRinin") X(ArbitraryFloatRecipALTERA, 5855, "TRinnnnn") \
  X(ArbitraryFloatRSqrtALTERA, 5856, "TRinnnnn") X(ArbitraryFloatCbrtALTERA, 5857, "TRinnnnn") \
  X(ArbitraryFloatHypotALTERA, 5858, "TRininnnnn") X(ArbitraryFloatSqrtALTERA, 5859, "TRinnnnn") \
  X(ArbitraryFloatLogINTEL, 5860, "TRinnnnn") X(ArbitraryFloatLog2INTEL, 5861, "TRinnnnn") \
  X(ArbitraryFloatLog10INTEL, 5862, "TRinnnnn") X(ArbitraryFloatLog1pINTEL, 5863, "TRinnnnn") \
  X(ArbitraryFloatExpINTEL, 5864, "TRinnnnn") X(ArbitraryFloatExp2INTEL, 5865, "TRinnnnn") \
  X(ArbitraryFloatExp10INTEL, 5866, "TRinnnnn") X(ArbitraryFloatExpm1INTEL, 5867, "TRinnnnn") \
  X(ArbitraryFloatSinINTEL, 5868, "TRinnnnn") X(ArbitraryFloatCosINTEL, 5869, "TRinnnnn") \
  X(ArbitraryFloatSinCosINTEL, 5870, "TRinnnnn") X(ArbitraryFloatSinPiINTEL, 5871, "TRinnnnn") \
  X(ArbitraryFloatCosPiINTEL, 5872, "TRinnnnn") X(ArbitraryFloatASinINTEL, 5873, "TRinnnnn") \
  X(ArbitraryFloatASinPiINTEL, 5874, "TRinnnnn") X(ArbitraryFloatACosINTEL, 5875, "TRinnnnn") \
  X(ArbitraryFloatACosPiINTEL, 5876, "TRinnnnn") X(ArbitraryFloatATanINTEL, 5877, "TRinnnnn") \
  X(ArbitraryFloatATanPiINTEL, 5878, "TRinnnnn") X(ArbitraryFloatATan2INTEL, 5879, "TRininnnnn") \
  X(ArbitraryFloatPowINTEL, 5880, "TRininnnnn") X(ArbitraryFloatPowRINTEL, 5881, "TRininnnnn") \
  X(ArbitraryFloatPowNINTEL, 5882, "TRininnnnn") X(FixedSqrtALTERA, 5923, "TRinnnnn") \
  X(FixedRecipALTERA, 5924, "TRinnnnn") X(FixedRsqrtALTERA, 5925, "TRinnnnn") X(FixedSinALTERA, 5926, "TRinnnnn") \
  X(FixedCosALTERA, 5927, "TRinnnnn") X(FixedSinCosALTERA, 5928, "TRinnnnn") X(FixedSinPiALTERA, 5929, "TRinnnnn") \
  X(FixedCosPiALTERA, 5930, "TRinnnnn") X(FixedSinCosPiALTERA, 5931, "TRinnnnn") X(FixedLogALTERA, 5932, "TRinnnnn") \
  X(FixedExpALTERA, 5933, "TRinnnnn") X(PtrCastToCrossWorkgroupALTERA, 5934, "TRi") \
  X(CrossWorkgroupCastToPtrALTERA, 5938, "TRi") X(ReadPipeBlockingALTERA, 5946, "TRii") \
  X(WritePipeBlockingALTERA, 5947, "TRii") X(FPGARegALTERA, 5949, "TRi") X(RayQueryGetRayTMinKHR, 6016, "!") \
  X(RayQueryGetRayFlagsKHR, 6017, "!") X(RayQueryGetIntersectionTKHR, 6018, "!") \
  X(RayQueryGetIntersectionInstanceCustomIndexKHR, 6019, "!") X(RayQueryGetIntersectionInstanceIdKHR, 6020, "!") \
  X(RayQueryGetIntersectionInstanceShaderBindingTableRecordOffsetKHR, 6021, "!") \
  X(RayQueryGetIntersectionGeometryIndexKHR, 6022, "!") X(RayQueryGetIntersectionPrimitiveIndexKHR, 6023, "!") \
  X(RayQueryGetIntersectionBarycentricsKHR, 6024, "!") X(RayQueryGetIntersectionFrontFaceKHR, 6025, "!") \
  X(RayQueryGetIntersectionCandidateAABBOpaqueKHR, 6026, "!") \
  X(RayQueryGetIntersectionObjectRayDirectionKHR, 6027, "!") X(RayQueryGetIntersectionObjectRayOriginKHR, 6028, "!") \
  X(RayQueryGetWorldRayDirectionKHR, 6029, "!") X(RayQueryGetWorldRayOriginKHR, 6030, "!") \
  X(RayQueryGetIntersectionObjectToWorldKHR, 6031, "!") X(RayQueryGetIntersectionWorldToObjectKHR, 6032, "!") \
  X(TypeBufferSurfaceINTEL, 6086, "Rn") X(TypeStructContinuedINTEL, 6090, "?*") \
  X(ConstantCompositeContinuedINTEL, 6091, "?*") X(SpecConstantCompositeContinuedINTEL, 6092, "?*") \
  X(CompositeConstructContinuedINTEL, 6096, "TR?*") \
  X(ControlBarrierArriveINTEL, 6142, "iii") \
  X(ControlBarrierWaitINTEL, 6143, "iii") X(ArithmeticFenceEXT, 6145, "TRi") \
  X(TaskSequenceCreateALTERA, 6163, "TRinnnn") X(TaskSequenceAsyncALTERA, 6164, "i?*") \
  X(TaskSequenceGetALTERA, 6165, "TRi") X(TaskSequenceReleaseALTERA, 6166, "i") X(TypeTaskSequenceALTERA, 6199, "R") \
  X(SubgroupBlockPrefetchINTEL, 6221, "ii?#") X(Subgroup2DBlockLoadINTEL, 6231, "iiiiiiiiii") \
  X(Subgroup2DBlockLoadTransformINTEL, 6232, "iiiiiiiiii") X(Subgroup2DBlockLoadTransposeINTEL, 6233, "iiiiiiiiii") \
  X(Subgroup2DBlockPrefetchINTEL, 6234, "iiiiiiiii") X(Subgroup2DBlockStoreINTEL, 6235, "iiiiiiiiii") \
  X(SubgroupMatrixMultiplyAccumulateINTEL, 6237, "TRiiii?n") X(BitwiseFunctionINTEL, 6242, "TRiiii") \
  X(UntypedVariableLengthArrayINTEL, 6244, "TRii") X(ConditionalExtensionINTEL, 6248, "is") \
  X(ConditionalEntryPointINTEL, 6249, "inis?*") X(ConditionalCapabilityINTEL, 6250, "in") \
  X(SpecConstantTargetINTEL, 6251, "TRn?#") X(SpecConstantArchitectureINTEL, 6252, "TRnnnn") \
  X(SpecConstantCapabilitiesINTEL, 6253, "TR?#") X(ConditionalCopyObjectINTEL, 6254, "TR?*") \
  X(RoundFToTF32INTEL, 6426, "TRi") X(MaskedGatherINTEL, 6428, "TRinii") X(MaskedScatterINTEL, 6429, "iini") \
  X(ConvertHandleToImageINTEL, 6529, "TRi") X(ConvertHandleToSamplerINTEL, 6530, "TRi") \
  X(ConvertHandleToSampledImageINTEL, 6531, "TRi")

/* The numbers of all capabilities, as ranges: the first and the last of each. */
#define SPIRV_CAPABILITIES \
  {0, 15}, {17, 25}, {27, 71}, {4165, 4168}, {4174, 4176}, {4191, 4191}, {4201, 4201}, {4212, 4213}, {4422, 4423}, \
  {4427, 4431}, {4433, 4437}, {4439, 4439}, {4441, 4442}, {4445, 4445}, {4447, 4450}, {4464, 4468}, {4471, 4473}, \
  {4478, 4479}, {4484, 4486}, {4495, 4496}, {4498, 4498}, {5008, 5010}, {5013, 5013}, {5015, 5016}, {5055, 5055}, \
  {5067, 5067}, {5087, 5087}, {5112, 5112}, {5114, 5114}, {5116, 5118}, {5249, 5249}, {5251, 5251}, {5254, 5255}, \
  {5259, 5260}, {5265, 5266}, {5282, 5284}, {5288, 5288}, {5291, 5291}, {5297, 5297}, {5301, 5312}, {5336, 5336}, \
  {5340, 5341}, {5345, 5347}, {5350, 5350}, {5353, 5353}, {5357, 5357}, {5363, 5363}, {5372, 5373}, {5378, 5381}, \
  {5383, 5383}, {5388, 5388}, {5390, 5391}, {5394, 5394}, {5404, 5404}, {5409, 5409}, {5414, 5414}, {5418, 5419}, \
  {5426, 5426}, {5430, 5435}, {5437, 5437}, {5439, 5439}, {5568, 5570}, {5579, 5579}, {5582, 5584}, {5603, 5604}, \
  {5606, 5606}, {5612, 5613}, {5616, 5617}, {5619, 5619}, {5629, 5629}, {5696, 5698}, {5817, 5817}, {5821, 5821}, \
  {5824, 5824}, {5837, 5837}, {5844, 5845}, {5886, 5886}, {5888, 5888}, {5892, 5892}, {5897, 5898}, {5904, 5904}, \
  {5906, 5906}, {5908, 5908}, {5910, 5910}, {5916, 5916}, {5920, 5920}, {5922, 5922}, {5935, 5935}, {5939, 5939}, \
  {5943, 5943}, {5945, 5945}, {5948, 5948}, {6016, 6020}, {6022, 6022}, {6024, 6026}, {6029, 6030}, {6033, 6034}, \
  {6089, 6089}, {6094, 6095}, {6114, 6115}, {6141, 6141}, {6144, 6144}, {6150, 6150}, {6161, 6162}, {6169, 6169}, \
  {6171, 6171}, {6174, 6174}, {6187, 6187}, {6189, 6189}, {6220, 6220}, {6228, 6230}, {6236, 6236}, {6241, 6241}, \
  {6243, 6243}, {6245, 6246}, {6400, 6400}, {6425, 6425}, {6427, 6427}, {6441, 6441}, {6460, 6460}, {6528, 6528}
/* clang-format on */

#endif
