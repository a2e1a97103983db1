// The C interface of the CUDA driver, as far as this folder calls it, found in libcuda.so.1 at run time. The declarations
// are our own, so that no build needs the toolkit; names, types and numbers are those of the CUDA driver API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/status.h"

namespace stepscope::cuda {

using CuResult = int;                  // CUresult
using CuDevice = int;                  // CUdevice
using CuAddress = unsigned long long;  // CUdeviceptr
struct CuContextState;
struct CuStreamState;
struct CuEventState;
struct CuModuleState;
struct CuFunctionState;
struct CuGraphState;
struct CuGraphExecState;
using CuContext = CuContextState*;
using CuStream = CuStreamState*;
using CuEvent = CuEventState*;
using CuModule = CuModuleState*;
using CuFunction = CuFunctionState*;
using CuGraph = CuGraphState*;
using CuGraphExec = CuGraphExecState*;
using CuHostFunction = void (*)(void*);

// CUresult, as far as something here looks at it.
enum : CuResult {
  kCuSuccess = 0,
  kCuOutOfMemory = 2,
  kCuDeinitialized = 4,
  kCuDeviceUnavailable = 46,
  kCuNoDevice = 100,
  kCuInvalidImage = 200,
  kCuNoBinaryForGpu = 209,
  kCuEccUncorrectable = 214,
  kCuNvlinkUncorrectable = 220,
  kCuUnsupportedPtx = 222,
  kCuContained = 226,
  kCuNotFound = 500,
  kCuNotReady = 600,
  kCuIllegalAddress = 700,
  kCuLaunchOutOfResources = 701,
  kCuLaunchTimeout = 702,
  kCuContextDestroyed = 709,
  kCuAssert = 710,
  kCuHardwareStackError = 714,
  kCuIllegalInstruction = 715,
  kCuMisalignedAddress = 716,
  kCuInvalidAddressSpace = 717,
  kCuInvalidProgramCounter = 718,
  kCuLaunchFailed = 719,
  kCuTensorMemoryLeak = 721,
  kCuSystemDriverMismatch = 803,
  kCuMpsRpcFailure = 806,
  kCuMpsClientTerminated = 810,
  kCuCaptureUnsupported = 900,
  kCuCaptureInvalidated = 901,
  kCuCaptureUnjoined = 904,
  kCuCaptureIsolation = 905,
  kCuExternalDevice = 911,
  kCuUnknown = 999,
};

enum : int {  // attributes of a device
  kCuClockKhz = 13,
  kCuMultiprocessors = 16,
  kCuMemoryClockKhz = 36,
  kCuMemoryBusBits = 37,
  kCuThreadsOfMultiprocessor = 39,
  kCuCapabilityMajor = 75,
  kCuCapabilityMinor = 76,
};
enum : int {  // attributes of a function
  kCuSharedBytes = 1,
  kCuRegisters = 4,
};
inline constexpr unsigned kCuNonBlocking = 1;    // a stream that does not wait for the default one
inline constexpr int kCuCaptureThreadLocal = 1;  // calls of other threads are nothing to a recording
inline constexpr unsigned kCuTiming = 0;         // an event that tells when it was reached
inline constexpr unsigned kCuNoTiming = 2;       // one that does not
inline constexpr unsigned kCuHostReachable = 3;  // pinned memory: portable, mapped

// One line per function: member, symbol, parameters.
#define SS_DRIVER_FUNCTIONS(F)                                                                                          \
  F(init, cuInit, (unsigned flags))                                                                                     \
  F(driverVersion, cuDriverGetVersion, (int* version))                                                                  \
  F(errorName, cuGetErrorName, (CuResult error, const char** name))                                                     \
  F(errorText, cuGetErrorString, (CuResult error, const char** text))                                                   \
  F(deviceCount, cuDeviceGetCount, (int* count))                                                                        \
  F(deviceGet, cuDeviceGet, (CuDevice * device, int ordinal))                                                           \
  F(deviceName, cuDeviceGetName, (char* name, int length, CuDevice device))                                             \
  F(deviceMemory, cuDeviceTotalMem_v2, (std::size_t * bytes, CuDevice device))                                          \
  F(deviceAttribute, cuDeviceGetAttribute, (int* value, int attribute, CuDevice device))                                \
  F(contextRetain, cuDevicePrimaryCtxRetain, (CuContext * context, CuDevice device))                                    \
  F(contextRelease, cuDevicePrimaryCtxRelease_v2, (CuDevice device))                                                    \
  F(contextSet, cuCtxSetCurrent, (CuContext context))                                                                   \
  F(contextSynchronise, cuCtxSynchronize, ())                                                                           \
  F(moduleLoad, cuModuleLoadData, (CuModule * module, const void* image))                                               \
  F(moduleUnload, cuModuleUnload, (CuModule module))                                                                    \
  F(moduleFunction, cuModuleGetFunction, (CuFunction * function, CuModule module, const char* name))                    \
  F(memoryInfo, cuMemGetInfo_v2, (std::size_t * free, std::size_t * total))                                             \
  F(allocate, cuMemAlloc_v2, (CuAddress * address, std::size_t bytes))                                                  \
  F(free, cuMemFree_v2, (CuAddress address))                                                                            \
  F(allocateHost, cuMemHostAlloc, (void** address, std::size_t bytes, unsigned flags))                                  \
  F(freeHost, cuMemFreeHost, (void* address))                                                                           \
  F(copyIn, cuMemcpyHtoDAsync_v2, (CuAddress to, const void* from, std::size_t bytes, CuStream stream))                 \
  F(copyOut, cuMemcpyDtoHAsync_v2, (void* to, CuAddress from, std::size_t bytes, CuStream stream))                      \
  F(copyWithin, cuMemcpyDtoDAsync_v2, (CuAddress to, CuAddress from, std::size_t bytes, CuStream stream))               \
  F(fill, cuMemsetD8Async, (CuAddress to, unsigned char value, std::size_t bytes, CuStream stream))                     \
  F(streamCreate, cuStreamCreate, (CuStream * stream, unsigned flags))                                                  \
  F(streamDestroy, cuStreamDestroy_v2, (CuStream stream))                                                               \
  F(streamSynchronize, cuStreamSynchronize, (CuStream stream))                                                          \
  F(streamWait, cuStreamWaitEvent, (CuStream stream, CuEvent event, unsigned flags))                                    \
  F(hostFunction, cuLaunchHostFunc, (CuStream stream, CuHostFunction function, void* data))                             \
  F(captureBegin, cuStreamBeginCapture_v2, (CuStream stream, int mode))                                                 \
  F(captureEnd, cuStreamEndCapture, (CuStream stream, CuGraph * graph))                                                 \
  F(graphNodes, cuGraphGetNodes, (CuGraph graph, void** nodes, std::size_t* count))                                     \
  F(graphInstantiate, cuGraphInstantiateWithFlags, (CuGraphExec * executable, CuGraph graph, unsigned long long flags)) \
  F(graphDestroy, cuGraphDestroy, (CuGraph graph))                                                                      \
  F(graphLaunch, cuGraphLaunch, (CuGraphExec executable, CuStream stream))                                              \
  F(graphExecDestroy, cuGraphExecDestroy, (CuGraphExec executable))                                                     \
  F(eventCreate, cuEventCreate, (CuEvent * event, unsigned flags))                                                      \
  F(eventDestroy, cuEventDestroy_v2, (CuEvent event))                                                                   \
  F(eventRecord, cuEventRecord, (CuEvent event, CuStream stream))                                                       \
  F(eventQuery, cuEventQuery, (CuEvent event))                                                                          \
  F(eventSynchronize, cuEventSynchronize, (CuEvent event))                                                              \
  F(eventElapsed, cuEventElapsedTime, (float* milliseconds, CuEvent begin, CuEvent end))                                \
  F(functionAttribute, cuFuncGetAttribute, (int* value, int attribute, CuFunction function))                            \
  F(blocksOnOne, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                           \
    (int* blocks, CuFunction function, int threads, std::size_t sharedBytes))                                           \
  F(launch, cuLaunchKernel,                                                                                             \
    (CuFunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,             \
     unsigned blockZ, unsigned sharedBytes, CuStream stream, void** parameters, void** extra))

struct Driver {
#define SS_DRIVER_MEMBER(member, symbol, parameters) CuResult(*member) parameters = nullptr;
  SS_DRIVER_FUNCTIONS(SS_DRIVER_MEMBER)
#undef SS_DRIVER_MEMBER

  // Process-wide, loaded by the first call that finds it. Errors: kUnsupported: no libcuda.so.1, or one that lacks a
  // function.
  static Result<const Driver*> load();

  // "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  std::string describe(CuResult error) const;
};

// Whether nothing on the GPU works any more after this error, and whether that is for another reason than a kernel.
bool isSticky(CuResult error);
bool isLoss(CuResult error);

}  // namespace stepscope::cuda
