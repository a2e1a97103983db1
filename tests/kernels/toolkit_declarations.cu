// Our own declarations of the toolkit's interfaces beside the toolkit's: compiled by nvcc_test.py where there is a toolkit,
// never linked. What differs does not compile.
#include <cublasLt.h>
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#include <nvrtc.h>
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstddef>
#include <type_traits>

#include "engine/profile/nvtx.h"
#include "kernels/cuda_device/cublas.h"
#include "kernels/cuda_device/cupti.h"
#include "kernels/cuda_device/cupti_ranges.h"
#include "kernels/cuda_device/nccl.h"
#include "kernels/cuda_device/nvrtc.h"

using namespace stepscope;

#define SS_SAME_PLACE(ours, member, theirs, field)                                      \
  static_assert(offsetof(ours, member) == offsetof(theirs, field), #ours "::" #member); \
  static_assert(sizeof(ours::member) == sizeof(theirs::field), #ours "::" #member " size")

// Our declaration of a function has as many parameters as the toolkit's, each of as many bytes.
template <typename Result, typename... Parameters>
constexpr std::array<std::size_t, sizeof...(Parameters) + 1> shapeOf(Result (*)(Parameters...)) {
  return {sizeof(Result), sizeof(Parameters)...};
}
#define SS_SAME_SHAPE(ours, symbol) \
  static_assert(shapeOf(decltype(ours){}) == shapeOf(static_cast<decltype(&symbol)>(nullptr)), #ours);

// --- driver
#define SS_DRIVER_SHAPE(member, symbol, parameters) SS_SAME_SHAPE(cuda::Driver::member, symbol)
SS_DRIVER_FUNCTIONS(SS_DRIVER_SHAPE)
#define SS_CUPTI_SHAPE(member, symbol, parameters) SS_SAME_SHAPE(cuda::Cupti::member, symbol)
SS_CUPTI_FUNCTIONS(SS_CUPTI_SHAPE)
#define SS_CUBLAS_SHAPE(member, symbol, parameters) SS_SAME_SHAPE(cuda::CublasLt::member, symbol)
SS_CUBLAS_FUNCTIONS(SS_CUBLAS_SHAPE)
#define SS_NVRTC_SHAPE(member, symbol, parameters) SS_SAME_SHAPE(cuda::Nvrtc::member, symbol)
SS_NVRTC_FUNCTIONS(SS_NVRTC_SHAPE)
static_assert(cuda::kCuClockKhz == CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
static_assert(cuda::kCuMemoryClockKhz == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
static_assert(cuda::kCuCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::kCuCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::kCuNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(cuda::kCuTiming == CU_EVENT_DEFAULT && cuda::kCuNoTiming == CU_EVENT_DISABLE_TIMING);
static_assert(cuda::kCuHostReachable == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
static_assert(cuda::kCuDeinitialized == CUDA_ERROR_DEINITIALIZED && cuda::kCuNoDevice == CUDA_ERROR_NO_DEVICE &&
              cuda::kCuDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE &&
              cuda::kCuInvalidImage == CUDA_ERROR_INVALID_IMAGE && cuda::kCuNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU &&
              cuda::kCuEccUncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE &&
              cuda::kCuNvlinkUncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE &&
              cuda::kCuUnsupportedPtx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION && cuda::kCuNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(cuda::kCuIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS &&
              cuda::kCuLaunchOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES &&
              cuda::kCuLaunchTimeout == CUDA_ERROR_LAUNCH_TIMEOUT &&
              cuda::kCuContextDestroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED && cuda::kCuAssert == CUDA_ERROR_ASSERT &&
              cuda::kCuHardwareStackError == CUDA_ERROR_HARDWARE_STACK_ERROR &&
              cuda::kCuIllegalInstruction == CUDA_ERROR_ILLEGAL_INSTRUCTION &&
              cuda::kCuMisalignedAddress == CUDA_ERROR_MISALIGNED_ADDRESS &&
              cuda::kCuInvalidAddressSpace == CUDA_ERROR_INVALID_ADDRESS_SPACE &&
              cuda::kCuInvalidProgramCounter == CUDA_ERROR_INVALID_PC && cuda::kCuLaunchFailed == CUDA_ERROR_LAUNCH_FAILED &&
              cuda::kCuUnknown == CUDA_ERROR_UNKNOWN);
static_assert(cuda::kCuMpsRpcFailure == CUDA_ERROR_MPS_RPC_FAILURE &&
              cuda::kCuMpsClientTerminated == CUDA_ERROR_MPS_CLIENT_TERMINATED &&
              cuda::kCuSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH &&
              cuda::kCuExternalDevice == CUDA_ERROR_EXTERNAL_DEVICE);
#if CUDA_VERSION >= 12090
static_assert(cuda::kCuContained == CUDA_ERROR_CONTAINED && cuda::kCuTensorMemoryLeak == CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif
static_assert(cuda::kCuSharedBytes == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(cuda::kCuRegisters == CU_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(cuda::kCuThreadsOfMultiprocessor == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
static_assert(cuda::kCuMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(cuda::kCuMemoryBusBits == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
static_assert(cuda::kCuCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(cuda::kCuCaptureUnsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
              cuda::kCuCaptureInvalidated == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED &&
              cuda::kCuCaptureUnjoined == CUDA_ERROR_STREAM_CAPTURE_UNJOINED &&
              cuda::kCuCaptureIsolation == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
static_assert(cuda::kCuOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && cuda::kCuNotReady == CUDA_ERROR_NOT_READY);

// --- CUPTI
static_assert(cuda::kCuptiMemcpy == CUPTI_ACTIVITY_KIND_MEMCPY && cuda::kCuptiMemset == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(cuda::kCuptiDriver == CUPTI_ACTIVITY_KIND_DRIVER);
static_assert(cuda::kCuptiKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(cuda::kCuptiRuntime == CUPTI_ACTIVITY_KIND_RUNTIME && cuda::kCuptiOverhead == CUPTI_ACTIVITY_KIND_OVERHEAD &&
              cuda::kCuptiSynchronization == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
static_assert(cuda::kCuptiOnEvent == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE &&
              cuda::kCuptiStreamWaits == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT &&
              cuda::kCuptiOnStream == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE &&
              cuda::kCuptiOnContext == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
static_assert(cuda::kCuptiCompiler == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER &&
              cuda::kCuptiFlush == CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH &&
              cuda::kCuptiInstrumentation == CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION &&
              cuda::kCuptiResource == CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE &&
              cuda::kCuptiModuleLoading == CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING &&
              cuda::kCuptiFunctionLoading == CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING &&
              cuda::kCuptiCommandsFull == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL &&
              cuda::kCuptiBufferRequest == CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST &&
              cuda::kCuptiManagedMemory == CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT);
static_assert(cuda::kCuptiExternalCorrelation == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert(cuda::kCuptiCustom0 == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
static_assert(cuda::kCuptiFlushAll == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
static_assert(cuda::kCuptiToDevice == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD &&
              cuda::kCuptiToHost == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH &&
              cuda::kCuptiWithin == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SS_SAME_PLACE(cuda::CuptiRecord, kind, CUpti_Activity, kind);
SS_SAME_PLACE(cuda::CuptiKernelRecord, registers, CUpti_ActivityKernel10, registersPerThread);
SS_SAME_PLACE(cuda::CuptiKernelRecord, start, CUpti_ActivityKernel10, start);
SS_SAME_PLACE(cuda::CuptiKernelRecord, end, CUpti_ActivityKernel10, end);
SS_SAME_PLACE(cuda::CuptiKernelRecord, stream, CUpti_ActivityKernel10, streamId);
SS_SAME_PLACE(cuda::CuptiKernelRecord, staticShared, CUpti_ActivityKernel10, staticSharedMemory);
SS_SAME_PLACE(cuda::CuptiKernelRecord, dynamicShared, CUpti_ActivityKernel10, dynamicSharedMemory);
SS_SAME_PLACE(cuda::CuptiKernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
SS_SAME_PLACE(cuda::CuptiKernelRecord, name, CUpti_ActivityKernel10, name);
SS_SAME_PLACE(cuda::CuptiMemcpyRecord, copyKind, CUpti_ActivityMemcpy6, copyKind);
SS_SAME_PLACE(cuda::CuptiMemcpyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SS_SAME_PLACE(cuda::CuptiMemcpyRecord, start, CUpti_ActivityMemcpy6, start);
SS_SAME_PLACE(cuda::CuptiMemcpyRecord, end, CUpti_ActivityMemcpy6, end);
SS_SAME_PLACE(cuda::CuptiMemcpyRecord, correlation, CUpti_ActivityMemcpy6, correlationId);
SS_SAME_PLACE(cuda::CuptiMemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
SS_SAME_PLACE(cuda::CuptiMemsetRecord, start, CUpti_ActivityMemset4, start);
SS_SAME_PLACE(cuda::CuptiMemsetRecord, end, CUpti_ActivityMemset4, end);
SS_SAME_PLACE(cuda::CuptiMemsetRecord, correlation, CUpti_ActivityMemset4, correlationId);
SS_SAME_PLACE(cuda::CuptiCallRecord, start, CUpti_ActivityAPI, start);
SS_SAME_PLACE(cuda::CuptiCallRecord, end, CUpti_ActivityAPI, end);
SS_SAME_PLACE(cuda::CuptiCallRecord, correlation, CUpti_ActivityAPI, correlationId);
SS_SAME_PLACE(cuda::CuptiSynchronizationRecord, type, CUpti_ActivitySynchronization2, type);
SS_SAME_PLACE(cuda::CuptiSynchronizationRecord, start, CUpti_ActivitySynchronization2, start);
SS_SAME_PLACE(cuda::CuptiSynchronizationRecord, end, CUpti_ActivitySynchronization2, end);
SS_SAME_PLACE(cuda::CuptiSynchronizationRecord, correlation, CUpti_ActivitySynchronization2, correlationId);
SS_SAME_PLACE(cuda::CuptiSynchronizationRecord, stream, CUpti_ActivitySynchronization2, streamId);
SS_SAME_PLACE(cuda::CuptiOverheadRecord, overheadKind, CUpti_ActivityOverhead3, overheadKind);
SS_SAME_PLACE(cuda::CuptiOverheadRecord, start, CUpti_ActivityOverhead3, start);
SS_SAME_PLACE(cuda::CuptiOverheadRecord, end, CUpti_ActivityOverhead3, end);
SS_SAME_PLACE(cuda::CuptiOverheadRecord, data, CUpti_ActivityOverhead3, overheadData);
SS_SAME_PLACE(cuda::CuptiExternalRecord, externalKind, CUpti_ActivityExternalCorrelation, externalKind);
SS_SAME_PLACE(cuda::CuptiExternalRecord, externalId, CUpti_ActivityExternalCorrelation, externalId);
SS_SAME_PLACE(cuda::CuptiExternalRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);

// --- CUPTI's range profiler
#define SS_SAME_STRUCTURE(member, symbol, ours, theirs)                                               \
  static_assert(sizeof(cuda::ours) == sizeof(theirs), #ours);                                         \
  static_assert(SS_SIZE_UP_TO(cuda::ours, none) == CUPTI_PROFILER_STRUCT_SIZE(theirs, pPriv), #ours); \
  static_assert(std::is_same_v<decltype(&symbol), CUptiResult (*)(theirs*)>, #symbol);
SS_CUPTI_RANGE_FUNCTIONS(SS_SAME_STRUCTURE)
static_assert(cuda::kCuptiNoRights == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES &&
              cuda::kCuptiNoRightsVirtual == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
static_assert(cuda::kCuptiRangeProfiler == CUPTI_PROFILER_TYPE_RANGE_PROFILER && cuda::kCuptiUserRange == CUPTI_UserRange &&
              cuda::kCuptiUserReplay == CUPTI_UserReplay);
SS_SAME_PLACE(cuda::CuptiChipName, device, CUpti_Device_GetChipName_Params, deviceIndex);
SS_SAME_PLACE(cuda::CuptiChipName, name, CUpti_Device_GetChipName_Params, pChipName);
SS_SAME_PLACE(cuda::CuptiAvailability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
SS_SAME_PLACE(cuda::CuptiAvailability, bytes, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize);
SS_SAME_PLACE(cuda::CuptiAvailability, image, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage);
SS_SAME_PLACE(cuda::CuptiHostMake, profiler, CUpti_Profiler_Host_Initialize_Params, profilerType);
SS_SAME_PLACE(cuda::CuptiHostMake, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SS_SAME_PLACE(cuda::CuptiHostMake, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
SS_SAME_PLACE(cuda::CuptiHostMake, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
SS_SAME_PLACE(cuda::CuptiHost, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
SS_SAME_PLACE(cuda::CuptiHostMetrics, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
SS_SAME_PLACE(cuda::CuptiHostMetrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
SS_SAME_PLACE(cuda::CuptiHostMetrics, count, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);
SS_SAME_PLACE(cuda::CuptiHostConfigSize, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);
SS_SAME_PLACE(cuda::CuptiHostConfig, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
SS_SAME_PLACE(cuda::CuptiHostConfig, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
SS_SAME_PLACE(cuda::CuptiPasses, bytes, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
SS_SAME_PLACE(cuda::CuptiPasses, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
SS_SAME_PLACE(cuda::CuptiPasses, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
SS_SAME_PLACE(cuda::CuptiValues, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
SS_SAME_PLACE(cuda::CuptiValues, data, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
SS_SAME_PLACE(cuda::CuptiValues, bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize);
SS_SAME_PLACE(cuda::CuptiValues, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SS_SAME_PLACE(cuda::CuptiValues, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SS_SAME_PLACE(cuda::CuptiValues, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
SS_SAME_PLACE(cuda::CuptiValues, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);
SS_SAME_PLACE(cuda::CuptiEnable, context, CUpti_RangeProfiler_Enable_Params, ctx);
SS_SAME_PLACE(cuda::CuptiEnable, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
SS_SAME_PLACE(cuda::CuptiProfiler, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
SS_SAME_PLACE(cuda::CuptiDataSize, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
SS_SAME_PLACE(cuda::CuptiDataSize, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
SS_SAME_PLACE(cuda::CuptiDataSize, mostRanges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
SS_SAME_PLACE(cuda::CuptiDataSize, mostNodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
SS_SAME_PLACE(cuda::CuptiDataSize, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
SS_SAME_PLACE(cuda::CuptiDataMake, bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
SS_SAME_PLACE(cuda::CuptiDataMake, data, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);
SS_SAME_PLACE(cuda::CuptiConfigure, configBytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
SS_SAME_PLACE(cuda::CuptiConfigure, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
SS_SAME_PLACE(cuda::CuptiConfigure, dataBytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
SS_SAME_PLACE(cuda::CuptiConfigure, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SS_SAME_PLACE(cuda::CuptiConfigure, range, CUpti_RangeProfiler_SetConfig_Params, range);
SS_SAME_PLACE(cuda::CuptiConfigure, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SS_SAME_PLACE(cuda::CuptiConfigure, mostRanges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SS_SAME_PLACE(cuda::CuptiConfigure, levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
SS_SAME_PLACE(cuda::CuptiConfigure, leastLevel, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
SS_SAME_PLACE(cuda::CuptiConfigure, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SS_SAME_PLACE(cuda::CuptiConfigure, targetLevel, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);
SS_SAME_PLACE(cuda::CuptiStop, all, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
SS_SAME_PLACE(cuda::CuptiPush, name, CUpti_RangeProfiler_PushRange_Params, pRangeName);
SS_SAME_PLACE(cuda::CuptiDecode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);
SS_SAME_PLACE(cuda::CuptiDataInfo, data, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
SS_SAME_PLACE(cuda::CuptiDataInfo, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);
SS_SAME_PLACE(cuda::CuptiRangeInfo, range, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeIndex);
SS_SAME_PLACE(cuda::CuptiRangeInfo, delimiter, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeDelimiter);
SS_SAME_PLACE(cuda::CuptiRangeInfo, name, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeName);
static_assert(cuda::CuptiChipName().size == CUpti_Device_GetChipName_Params_STRUCT_SIZE &&
              cuda::CuptiValues().size == CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE &&
              cuda::CuptiConfigure().size == CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE &&
              cuda::CuptiStop().size == CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE &&
              cuda::CuptiDataSize().size == CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE);

// --- cuBLASLt
static_assert(cuda::kLtF32 == CUDA_R_32F && cuda::kLtF16 == CUDA_R_16F && cuda::kLtBF16 == CUDA_R_16BF);
static_assert(cuda::kLtComputeF32 == CUBLAS_COMPUTE_32F && cuda::kLtComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(cuda::kLtPlain == CUBLAS_OP_N && cuda::kLtTransposed == CUBLAS_OP_T);
static_assert(cuda::kLtDefault == CUBLASLT_EPILOGUE_DEFAULT && cuda::kLtRelu == CUBLASLT_EPILOGUE_RELU &&
              cuda::kLtBias == CUBLASLT_EPILOGUE_BIAS && (cuda::kLtRelu | cuda::kLtBias) == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert(cuda::kLtGelu == CUBLASLT_EPILOGUE_GELU && (cuda::kLtGelu | cuda::kLtBias) == CUBLASLT_EPILOGUE_GELU_BIAS &&
              (cuda::kLtGelu | cuda::kLtAux) == CUBLASLT_EPILOGUE_GELU_AUX &&
              (cuda::kLtGelu | cuda::kLtAux | cuda::kLtBias) == CUBLASLT_EPILOGUE_GELU_AUX_BIAS &&
              (cuda::kLtGeluSlope | cuda::kLtAux) == CUBLASLT_EPILOGUE_DGELU);
static_assert(cuda::kLtSumsOfA == CUBLASLT_EPILOGUE_BGRADA && cuda::kLtSumsOfB == CUBLASLT_EPILOGUE_BGRADB);
static_assert(cuda::kLtAuxPointer == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER &&
              cuda::kLtAuxLeading == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
static_assert(cuda::kLtTransA == CUBLASLT_MATMUL_DESC_TRANSA && cuda::kLtTransB == CUBLASLT_MATMUL_DESC_TRANSB &&
              cuda::kLtEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE &&
              cuda::kLtBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(cuda::kLtBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              cuda::kLtBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(cuda::kLtWorkspaceBytes == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              cuda::kLtReductions == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && CUBLASLT_REDUCTION_SCHEME_NONE == 0 &&
              cuda::kLtAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              cuda::kLtAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(cuda::LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
SS_SAME_PLACE(cuda::LtHeuristic, algorithm, cublasLtMatmulHeuristicResult_t, algo);
SS_SAME_PLACE(cuda::LtHeuristic, workspaceBytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
SS_SAME_PLACE(cuda::LtHeuristic, state, cublasLtMatmulHeuristicResult_t, state);

// --- NCCL, where it is installed beside the toolkit
#if __has_include(<nccl.h>)
static_assert(cuda::kNcclSuccess == ncclSuccess && cuda::kNcclSystemError == ncclSystemError &&
              cuda::kNcclInvalidArgument == ncclInvalidArgument && cuda::kNcclInvalidUsage == ncclInvalidUsage &&
              cuda::kNcclRemoteError == ncclRemoteError && cuda::kNcclInProgress == ncclInProgress);
static_assert(cuda::kNcclSum == ncclSum && cuda::kNcclAverage == ncclAvg);
static_assert(cuda::kNcclI8 == ncclInt8 && cuda::kNcclU8 == ncclUint8 && cuda::kNcclI32 == ncclInt32 &&
              cuda::kNcclU32 == ncclUint32 && cuda::kNcclI64 == ncclInt64 && cuda::kNcclU64 == ncclUint64 &&
              cuda::kNcclF16 == ncclFloat16 && cuda::kNcclF32 == ncclFloat32 && cuda::kNcclF64 == ncclFloat64 &&
              cuda::kNcclBF16 == ncclBfloat16);
static_assert(sizeof(cuda::NcclId) == sizeof(ncclUniqueId) && sizeof(cuda::NcclComm) == sizeof(ncclComm_t) &&
              sizeof(cuda::NcclResult) == sizeof(ncclResult_t));
#define SS_NCCL_SHAPE(member, symbol, parameters) SS_SAME_SHAPE(cuda::Nccl::member, symbol)
SS_NCCL_FUNCTIONS(SS_NCCL_SHAPE)
#endif

// --- NVTX
SS_SAME_PLACE(nvtx::Event, version, nvtxEventAttributes_t, version);
SS_SAME_PLACE(nvtx::Event, size, nvtxEventAttributes_t, size);
SS_SAME_PLACE(nvtx::Event, colourType, nvtxEventAttributes_t, colorType);
SS_SAME_PLACE(nvtx::Event, colour, nvtxEventAttributes_t, color);
SS_SAME_PLACE(nvtx::Event, messageType, nvtxEventAttributes_t, messageType);
SS_SAME_PLACE(nvtx::Event, message, nvtxEventAttributes_t, message);
static_assert(sizeof(nvtx::Event) == sizeof(nvtxEventAttributes_t) && nvtx::Event{}.size == sizeof(nvtxEventAttributes_t));
static_assert(nvtx::Event{}.version == NVTX_VERSION);
static_assert(nvtx::kText == NVTX_MESSAGE_TYPE_ASCII && nvtx::kColourArgb == NVTX_COLOR_ARGB);
static_assert(nvtx::kCore2 == NVTX_CB_MODULE_CORE2 && nvtx::kModules == NVTX_CB_MODULE_SIZE);
static_assert(nvtx::kRangeStart == NVTX_CBID_CORE2_DomainRangeStartEx && nvtx::kRangeEnd == NVTX_CBID_CORE2_DomainRangeEnd);
static_assert(nvtx::kRangePush == NVTX_CBID_CORE2_DomainRangePushEx && nvtx::kRangePop == NVTX_CBID_CORE2_DomainRangePop);
static_assert(nvtx::kDomainCreate == NVTX_CBID_CORE2_DomainCreateA && nvtx::kFunctions == NVTX_CBID_CORE2_SIZE);
static_assert(sizeof(nvtx::Callbacks) == sizeof(NvtxExportTableCallbacks));
