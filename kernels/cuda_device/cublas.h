// The C interface of cuBLASLt, as far as this folder calls it, found at run time. The declarations are our own, so that no
// build needs the toolkit; names, types and numbers are those of cuBLASLt 12 and 13 (tests/kernels/toolkit_declarations.cu
// compares them with the toolkit's).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

using LtStatus = int;  // cublasStatus_t; 0: success
using LtHandle = void*;
using LtMatmul = void*;      // cublasLtMatmulDesc_t
using LtLayout = void*;      // cublasLtMatrixLayout_t
using LtPreference = void*;  // cublasLtMatmulPreference_t

enum : int { kLtF32 = 0, kLtF16 = 2, kLtBF16 = 14 };     // cudaDataType
enum : int { kLtComputeF32 = 68, kLtComputeTf32 = 77 };  // cublasComputeType_t: 32F, 32F_FAST_TF32
enum : std::int32_t { kLtPlain = 0, kLtTransposed = 1 };
enum : std::uint32_t {  // cublasLtEpilogue_t: bits, of which kLtGeluSlope comes with kLtAux, and the sums of A and B alone
  kLtDefault = 1,
  kLtRelu = 2,
  kLtBias = 4,
  kLtGelu = 32,
  kLtGeluSlope = 64,
  kLtAux = 128,
  kLtSumsOfA = 256,
  kLtSumsOfB = 512,
};
enum : int {  // of a matmul
  kLtTransA = 3,
  kLtTransB = 4,
  kLtEpilogue = 7,
  kLtBiasPointer = 8,
  kLtAuxPointer = 11,
  kLtAuxLeading = 12,
};
enum : int { kLtBatchCount = 5, kLtBatchStride = 6 };  // of a layout
enum : int {                                           // of a preference
  kLtWorkspaceBytes = 1,
  kLtReductions = 3,
  kLtAlignmentA = 5,
  kLtAlignmentB = 6,
  kLtAlignmentC = 7,
  kLtAlignmentD = 8,
};

struct LtHeuristic {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t algorithm[8];
  std::size_t workspaceBytes;
  LtStatus state;
  float waves;
  int reserved[4];
};

// One line per function: member, symbol, parameters.
#define SS_CUBLAS_FUNCTIONS(F)                                                                                              \
  F(create, cublasLtCreate, (LtHandle * handle))                                                                            \
  F(destroy, cublasLtDestroy, (LtHandle handle))                                                                            \
  F(matmulCreate, cublasLtMatmulDescCreate, (LtMatmul * made, int compute, int scale))                                      \
  F(matmulDestroy, cublasLtMatmulDescDestroy, (LtMatmul matmul))                                                            \
  F(matmulSet, cublasLtMatmulDescSetAttribute, (LtMatmul matmul, int which, const void* value, std::size_t bytes))          \
  F(layoutCreate, cublasLtMatrixLayoutCreate,                                                                               \
    (LtLayout * made, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading))                           \
  F(layoutDestroy, cublasLtMatrixLayoutDestroy, (LtLayout layout))                                                          \
  F(layoutSet, cublasLtMatrixLayoutSetAttribute, (LtLayout layout, int which, const void* value, std::size_t bytes))        \
  F(preferenceCreate, cublasLtMatmulPreferenceCreate, (LtPreference * made))                                                \
  F(preferenceDestroy, cublasLtMatmulPreferenceDestroy, (LtPreference preference))                                          \
  F(preferenceSet, cublasLtMatmulPreferenceSetAttribute,                                                                    \
    (LtPreference preference, int which, const void* value, std::size_t bytes))                                             \
  F(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                                              \
    (LtHandle handle, LtMatmul matmul, LtLayout a, LtLayout b, LtLayout c, LtLayout d, LtPreference preference, int asked,  \
     LtHeuristic* results, int* found))                                                                                     \
  F(matmul, cublasLtMatmul,                                                                                                 \
    (LtHandle handle, LtMatmul matmul, const void* alpha, const void* a, LtLayout aLayout, const void* b, LtLayout bLayout, \
     const void* beta, const void* c, LtLayout cLayout, void* d, LtLayout dLayout, const void* algorithm, void* workspace,  \
     std::size_t workspaceBytes, CuStream stream))

struct CublasLt {
#define SS_CUBLAS_MEMBER(member, symbol, parameters) LtStatus(*member) parameters = nullptr;
  SS_CUBLAS_FUNCTIONS(SS_CUBLAS_MEMBER)
#undef SS_CUBLAS_MEMBER

  // The library that STEPSCOPE_CUBLASLT names ("off": none), else that of the system. Loaded once per name. Errors:
  // kUnsupported, for people.
  static Result<const CublasLt*> load();
};

}  // namespace stepscope::cuda
