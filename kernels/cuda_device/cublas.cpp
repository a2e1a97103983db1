#include "kernels/cuda_device/cublas.h"

#include <map>
#include <mutex>

#include "kernels/cuda_device/optional_library.h"

namespace stepscope::cuda {

Result<const CublasLt*> CublasLt::load() {
  static std::mutex mutex;
  static std::map<void*, CublasLt> loaded;
  const std::lock_guard lock(mutex);
  SS_ASSIGN(void* const library,
            openLibrary("cuBLASLt", "STEPSCOPE_CUBLASLT",
                        {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"}));
  if (const auto known = loaded.find(library); known != loaded.end()) return &known->second;
  CublasLt found;
#define SS_CUBLAS_FIND(member, symbol, parameters)                            \
  {                                                                           \
    SS_ASSIGN(void* const address, findSymbol(library, "cuBLASLt", #symbol)); \
    found.member = reinterpret_cast<LtStatus(*) parameters>(address);         \
  }
  SS_CUBLAS_FUNCTIONS(SS_CUBLAS_FIND)
#undef SS_CUBLAS_FIND
  return &(loaded[library] = found);
}

}  // namespace stepscope::cuda
