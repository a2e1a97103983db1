#include "kernels/cuda_device/cupti.h"

#include <map>
#include <mutex>

#include "kernels/cuda_device/cupti_ranges.h"
#include "kernels/cuda_device/optional_library.h"

namespace stepscope::cuda {
namespace {

// What `find` makes of the library, once for each.
template <typename Functions, typename Find>
Result<const Functions*> loadOnce(Find&& find) {
  static std::mutex mutex;
  static std::map<void*, Functions> loaded;
  const std::lock_guard lock(mutex);
  SS_ASSIGN(void* const library,
            openLibrary("CUPTI", "STEPSCOPE_CUPTI",
                        {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}));
  if (const auto known = loaded.find(library); known != loaded.end()) return &known->second;
  Functions found;
  SS_TRY(find(library, found));
  return &(loaded[library] = found);
}

}  // namespace

Result<const Cupti*> Cupti::load() {
  return loadOnce<Cupti>([](void* library, Cupti& found) -> Status {
#define SS_CUPTI_FIND(member, symbol, parameters)                          \
  {                                                                        \
    SS_ASSIGN(void* const address, findSymbol(library, "CUPTI", #symbol)); \
    found.member = reinterpret_cast<CuptiResult(*) parameters>(address);   \
  }
    SS_CUPTI_FUNCTIONS(SS_CUPTI_FIND)
#undef SS_CUPTI_FIND
    return {};
  });
}

Result<const CuptiRanges*> CuptiRanges::load() {
  return loadOnce<CuptiRanges>([](void* library, CuptiRanges& found) -> Status {
#define SS_CUPTI_FIND(member, symbol, ours, theirs)                        \
  {                                                                        \
    SS_ASSIGN(void* const address, findSymbol(library, "CUPTI", #symbol)); \
    found.member = reinterpret_cast<CuptiResult (*)(ours*)>(address);      \
  }
    SS_CUPTI_RANGE_FUNCTIONS(SS_CUPTI_FIND)
#undef SS_CUPTI_FIND
    return {};
  });
}

}  // namespace stepscope::cuda
