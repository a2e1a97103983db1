// The C interface of NCCL, as far as this folder calls it, found at run time. The declarations are our own, so that no build
// needs NCCL; names, types and numbers are those of nccl.h 2.10 to 2.29 (tests/kernels/toolkit_declarations.cu compares
// them with it where it is installed).
#pragma once

#include <cstddef>

#include "kernels/cuda_device/driver.h"
#include "kernels/device_ranks.h"

namespace stepscope::cuda {

using NcclResult = int;  // ncclResult_t; 0: success
using NcclComm = void*;  // ncclComm_t
struct NcclId {          // ncclUniqueId
  char internal[kDeviceRanksIdBytes];
};

// ncclResult_t, as far as something here looks at it.
enum : NcclResult {
  kNcclSuccess = 0,
  kNcclSystemError = 2,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7,
};
enum : int { kNcclSum = 0, kNcclAverage = 4 };  // ncclRedOp_t
enum : int {                                    // ncclDataType_t
  kNcclI8 = 0,
  kNcclU8 = 1,
  kNcclI32 = 2,
  kNcclU32 = 3,
  kNcclI64 = 4,
  kNcclU64 = 5,
  kNcclF16 = 6,
  kNcclF32 = 7,
  kNcclF64 = 8,
  kNcclBF16 = 9,
};

// One line per function: member, symbol, parameters.
#define SS_NCCL_FUNCTIONS(F)                                                                                            \
  F(version, ncclGetVersion, (int* version))                                                                            \
  F(uniqueId, ncclGetUniqueId, (NcclId * id))                                                                           \
  F(init, ncclCommInitRank, (NcclComm * comm, int ranks, NcclId id, int rank))                                          \
  F(destroy, ncclCommDestroy, (NcclComm comm))                                                                          \
  F(abort, ncclCommAbort, (NcclComm comm))                                                                              \
  F(asyncError, ncclCommGetAsyncError, (NcclComm comm, NcclResult * error))                                             \
  F(groupStart, ncclGroupStart, ())                                                                                     \
  F(groupEnd, ncclGroupEnd, ())                                                                                         \
  F(allReduce, ncclAllReduce,                                                                                           \
    (const void* in, void* out, std::size_t count, int type, int op, NcclComm comm, CuStream stream))                   \
  F(allGather, ncclAllGather, (const void* in, void* out, std::size_t count, int type, NcclComm comm, CuStream stream)) \
  F(reduceScatter, ncclReduceScatter,                                                                                   \
    (const void* in, void* out, std::size_t count, int type, int op, NcclComm comm, CuStream stream))                   \
  F(reduce, ncclReduce,                                                                                                 \
    (const void* in, void* out, std::size_t count, int type, int op, int root, NcclComm comm, CuStream stream))         \
  F(broadcast, ncclBroadcast,                                                                                           \
    (const void* in, void* out, std::size_t count, int type, int root, NcclComm comm, CuStream stream))                 \
  F(send, ncclSend, (const void* in, std::size_t count, int type, int peer, NcclComm comm, CuStream stream))            \
  F(receive, ncclRecv, (void* out, std::size_t count, int type, int peer, NcclComm comm, CuStream stream))

struct Nccl {
#define SS_NCCL_MEMBER(member, symbol, parameters) NcclResult(*member) parameters = nullptr;
  SS_NCCL_FUNCTIONS(SS_NCCL_MEMBER)
#undef SS_NCCL_MEMBER
  const char* (*errorText)(NcclResult error) = nullptr;  // ncclGetErrorString
  const char* (*lastError)(NcclComm comm) = nullptr;     // ncclGetLastError; null before 2.13

  // The library that STEPSCOPE_NCCL names ("off": none), else that of the system. Loaded once per name. Errors:
  // kUnsupported, for people: no libnccl.so.2, or one that lacks a function or is older than 2.10.
  static Result<const Nccl*> load();

  std::string versionText() const;  // "2.21.5"
  // "unhandled system error: …", with what the library last warned of.
  std::string describe(NcclResult error, NcclComm comm) const;
};

}  // namespace stepscope::cuda
