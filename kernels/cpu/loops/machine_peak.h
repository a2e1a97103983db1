// What this machine can do, measured: operations per second of products in float32 and in bfloat16, and bytes per second
// from its caches and its memory.
//
// Operations  a matrix product of 1024 x 1024 x 1024 through the list of fast kernels (oneDNN); a multiply-add counts as
// two. Bytes       y[i] = a[i] + 3 b[i] (triad), y[i] = a[i] + 3 y[i] (update), y[i] = 3 a[i] (copy) or the sum of a[i] over
// a working set;
//             results of their own memory are written past the caches where that is faster. The fork and join of a kernel
//             are part of the time.
// Each figure is the best round of several, so that what else the machine does takes little from it; `seconds` is how long
// to try (at least three rounds). Not while kernels run elsewhere in the process: their time would be part of it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/dtype.h"

namespace stepscope::cpu {

enum class Traffic { kSum, kTriad, kUpdate, kCopy };  // bytes that are written: none, one third, one third, one half

// Bytes per second over a working set of `bytes`.
double trafficPeak(std::int64_t bytes, Traffic traffic, int threads, double seconds);

// Operations per second of products of this type; 0 when there is no fast matrix product that computes in it. There is none
// in float16, and one in bfloat16 where the processor has its dot products or tiles.
double operationsPeak(int threads, double seconds, DType dtype = DType::kF32);

struct MemoryLevel {
  std::string_view name;      // "core caches": those of one core each · "shared cache" · "memory"
  std::int64_t capacity = 0;  // bytes that it holds; 0 = no limit
  // Bytes that it was measured over: half of a cache; memory: eight times the largest cache, 64 to 512 MiB.
  std::int64_t workingSet = 0;
  double bytesPerSecond = 0;  // triad or update, whichever is faster; not less than that of the levels below
};

struct MachinePeak {
  int threads = 0;  // 0: of a device that is not the CPU (kernels/cuda_device/device_peak.h)
  double operationsPerSecond = 0;
  double bfloat16PerSecond = 0;  // 0: products in it are computed in float32
  double float16PerSecond = 0;   // as that

  // Of products whose operands are of this type.
  double operationsIn(DType dtype) const {
    const double low = dtype == DType::kBF16 ? bfloat16PerSecond : dtype == DType::kF16 ? float16PerSecond : 0;
    return low > 0 ? low : operationsPerSecond;
  }

  std::vector<MemoryLevel> levels;  // fastest first, memory last
  std::int64_t ns = 0;              // what measuring took

  // Of those who measure and keep it (engine/build/known_roofs.h).
  double waiting = 0;    // share of the time that its threads had no core: 0 to 1; of several measurements, of the calmest
  int measurements = 1;  // of which this has the best figures
};

// About 0.3 s.
MachinePeak measureMachinePeak(int threads);

// As measured by the first call with this number of threads in this process. Any thread.
const MachinePeak& machinePeak(int threads);

// The same where it is known already, else null. What was found earlier, by another process: from here on known, unless it
// already is. Any thread.
const MachinePeak* knownMachinePeak(int threads);
void adoptMachinePeak(MachinePeak peak);

}  // namespace stepscope::cpu
