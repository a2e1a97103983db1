// Kernels whose source is written at run time, because it depends on the graph: a device that has a compiler (NVRTC)
// compiles and launches them in place of a kernel that interprets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/space.h"
#include "kernels/status.h"

namespace stepscope {

// One launch. All that is compiled is `prelude` and `source`; the kernel is `extern "C"` and called kGeneratedEntry.
struct GeneratedLaunch {
  std::string_view prelude;  // the same for all sources of a kind
  const std::string& source;
  const char* name = "";  // for people
  std::int64_t blocks = 0;
  int threads = 0;
  std::span<void*> parameters;  // addresses of the values; they are copied
  StreamId stream = 0;
};
inline constexpr const char* kGeneratedEntry = "generated";

namespace gpu {

class GeneratedKernels {
 public:
  virtual ~GeneratedKernels() = default;
  // Puts the kernel on its stream; compiles it first where its source is new. False: there is no compiler, or not now, or it
  // does not take the source; nothing was put there. Errors: kInternal from the driver.
  virtual Result<bool> launch(const GeneratedLaunch& launch) = 0;
};

// Of the device that launches a kernel in this thread; null: it has none.
inline constinit thread_local GeneratedKernels* generatedKernels = nullptr;

}  // namespace gpu
}  // namespace stepscope
