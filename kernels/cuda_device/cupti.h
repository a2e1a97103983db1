// The C interface of CUPTI's activity records, as far as this folder reads them, found at run time. The declarations are our
// own, so that no build needs the toolkit; names, types and numbers are those of CUPTI 12 and 13, whose records agree in
// what is declared here (tests/kernels/toolkit_declarations.cu compares them with the toolkit's).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

using CuptiResult = int;  // CUptiResult; 0: success

enum : std::uint32_t {  // CUpti_ActivityKind
  kCuptiMemcpy = 1,
  kCuptiMemset = 2,
  kCuptiDriver = 4,
  kCuptiRuntime = 5,
  kCuptiKernel = 10,  // CONCURRENT_KERNEL
  kCuptiOverhead = 17,
  kCuptiSynchronization = 38,
  kCuptiExternalCorrelation = 39,
};
inline constexpr std::uint32_t kCuptiCustom0 = 3;   // CUpti_ExternalCorrelationKind
inline constexpr std::uint32_t kCuptiFlushAll = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
enum : std::uint8_t { kCuptiToDevice = 1, kCuptiToHost = 2, kCuptiWithin = 8 };
enum : std::uint32_t {  // CUpti_ActivitySynchronizationType
  kCuptiOnEvent = 1,
  kCuptiStreamWaits = 2,
  kCuptiOnStream = 3,
  kCuptiOnContext = 4,
};
enum : std::uint32_t {  // CUpti_ActivityOverheadKind
  kCuptiCompiler = 1,
  kCuptiFlush = 1u << 16,
  kCuptiInstrumentation = 2u << 16,
  kCuptiResource = 3u << 16,
  kCuptiModuleLoading = 4u << 16,
  kCuptiFunctionLoading = 5u << 16,
  kCuptiCommandsFull = 6u << 16,
  kCuptiBufferRequest = 7u << 16,
  kCuptiManagedMemory = 8u << 16,
};
inline constexpr std::uint32_t kCuptiOverheadData = 26;  // from this version on an overhead may have data

// The beginnings of the records.
struct CuptiRecord {
  std::uint32_t kind;
};
struct CuptiKernelRecord {
  std::uint32_t kind;
  std::uint8_t cache, sharedConfig;
  std::uint16_t registers;
  std::uint32_t cacheRequested, cacheExecuted;
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3];
  std::int32_t staticShared, dynamicShared;
  std::uint32_t localPerThread, localTotal, correlation;
  std::int64_t gridId;
  const char* name;
};
struct CuptiMemcpyRecord {
  std::uint32_t kind;
  std::uint8_t copyKind, source, target, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
};
struct CuptiMemsetRecord {
  std::uint32_t kind, value;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
};
struct CuptiCallRecord {  // of the driver or of the runtime
  std::uint32_t kind, function;
  std::uint64_t start, end;
  std::uint32_t process, thread, correlation, result;
};
struct CuptiSynchronizationRecord {
  std::uint32_t kind, type;
  std::uint64_t start, end;
  std::uint32_t correlation, context, stream, event;
};
struct CuptiOverheadRecord {
  std::uint32_t kind, overheadKind, objectKind, objectId[3];
  std::uint64_t start, end;
  std::uint32_t correlation, reserved;
  void* data;  // for the reader to free
};
struct CuptiExternalRecord {
  std::uint32_t kind, externalKind;
  std::uint64_t externalId;
  std::uint32_t correlation, reserved;
};

// CUPTI asks for a buffer, and hands one back with `valid` bytes of records.
using CuptiBufferRequested = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* mostRecords);
// See above.
using CuptiBufferCompleted = void (*)(CuContext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                      std::size_t valid);

// One line per function: member, symbol, parameters.
#define SS_CUPTI_FUNCTIONS(F)                                                                                            \
  F(version, cuptiGetVersion, (std::uint32_t * version))                                                                 \
  F(timestamp, cuptiGetTimestamp, (std::uint64_t * ns))                                                                  \
  F(registerCallbacks, cuptiActivityRegisterCallbacks, (CuptiBufferRequested requested, CuptiBufferCompleted completed)) \
  F(enable, cuptiActivityEnable, (std::uint32_t kind))                                                                   \
  F(disable, cuptiActivityDisable, (std::uint32_t kind))                                                                 \
  F(flushAll, cuptiActivityFlushAll, (std::uint32_t flag))                                                               \
  F(nextRecord, cuptiActivityGetNextRecord, (std::uint8_t * buffer, std::size_t valid, CuptiRecord * *record))           \
  F(dropped, cuptiActivityGetNumDroppedRecords, (CuContext context, std::uint32_t stream, std::size_t * count))          \
  F(pushExternal, cuptiActivityPushExternalCorrelationId, (std::uint32_t kind, std::uint64_t id))                        \
  F(popExternal, cuptiActivityPopExternalCorrelationId, (std::uint32_t kind, std::uint64_t * last))

struct Cupti {
#define SS_CUPTI_MEMBER(member, symbol, parameters) CuptiResult(*member) parameters = nullptr;
  SS_CUPTI_FUNCTIONS(SS_CUPTI_MEMBER)
#undef SS_CUPTI_MEMBER

  // The library that STEPSCOPE_CUPTI names ("off": none), else that of the system or of /usr/local/cuda. Loaded once per
  // name. Errors: kUnsupported, for people.
  static Result<const Cupti*> load();
};

}  // namespace stepscope::cuda
