// How the fake libraries of the toolkit see and use the fake GPU: through what its driver exports beside its own functions.
#pragma once

#include <cstdint>

#include "kernels/cuda_device/driver.h"

namespace stepscope::fake {

enum class Seen : std::uint32_t { kKernel, kCopyIn, kCopyOut, kCopyWithin, kFill };

struct Work {
  Seen kind = Seen::kKernel;
  std::uint64_t bytes = 0;
  std::int64_t blocks = 0;
  int threads = 0;
  const char* name = "";
};

enum class Waited : std::uint32_t { kForEvent, kStreamForEvent, kForStream };

/// Times are nanoseconds of the steady clock.
struct Observer {
  /// In the thread that makes a call of the driver which puts work on a stream, or waits.
  void (*called)(std::uint32_t correlation, std::int64_t begin, std::int64_t end);
  /// Behind that for a wait.
  void (*waited)(std::uint32_t correlation, Waited what, std::int64_t begin, std::int64_t end);
  /// When that work has run.
  void (*ran)(std::uint32_t correlation, const Work& work, std::int64_t begin, std::int64_t end);
};

/// fakeGpuObserve of the fake driver; null: nobody observes.
using Observe = void (*)(const Observer* observer);

/// fakeGpuPut: work(data) runs when the stream comes to it, with the memory of the GPU open. Answers a CUresult.
using Put = int (*)(cuda::CuStreamState* stream, void (*work)(void* data), void* data, const char* name);

/// fakeGpuRun: runs what the stream holds, which may be captured meanwhile. Answers kCuNotReady where it waits for another
/// one.
using Run = int (*)(cuda::CuStreamState* stream);

}  // namespace stepscope::fake
