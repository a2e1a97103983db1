#include "kernels/cuda_device/cupti.h"

#include <map>
#include <mutex>

#include "kernels/cuda_device/optional_library.h"

namespace stepscope::cuda {

Result<const Cupti*> Cupti::load() {
  static std::mutex mutex;
  static std::map<void*, Cupti> loaded;
  const std::lock_guard lock(mutex);
  SS_ASSIGN(void* const library,
            openLibrary("CUPTI", "STEPSCOPE_CUPTI",
                        {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}));
  if (const auto known = loaded.find(library); known != loaded.end()) return &known->second;
  Cupti found;
#define SS_CUPTI_FIND(member, symbol, parameters)                          \
  {                                                                        \
    SS_ASSIGN(void* const address, findSymbol(library, "CUPTI", #symbol)); \
    found.member = reinterpret_cast<CuptiResult(*) parameters>(address);   \
  }
  SS_CUPTI_FUNCTIONS(SS_CUPTI_FIND)
#undef SS_CUPTI_FIND
  return &(loaded[library] = found);
}

}  // namespace stepscope::cuda
