// What the device that runs a plan can do, measured through the device itself: its products and its memory.
//
// Of the CPU, and of devices that run its kernels: kernels/cpu/loops/machine_peak.h. Of others:
//
// Operations  products n x n x n of the device's kernels, in float32, float16 and bfloat16 (on a GPU by the library where
//             there is one, without TF32). n is doubled until a product takes two milliseconds, at most 4096; the best.
// Bytes       z[i] = x[i] + y[i] in float32, 12 bytes an element, over a working set that is doubled until a call takes
//             two milliseconds, at most 768 MiB and an eighth of the memory; the last. One level, "memory": what a cache
//             of the device still holds may come faster than it allows.
//
// Each is the best of three rounds, by the clock of the host around calls that are put there together, so that starting
// one is not part of it. Where something cannot be measured (no memory, a device that is lost) stands what the device's
// attributes say; 0: not known.
#pragma once

#include "kernels/cpu/loops/machine_peak.h"
#include "kernels/device.h"

namespace stepscope {

// As measured by the first call for this name of a device, or this number of threads, in this process. Any thread; not while
// something else runs on the device. About a tenth of a second.
const cpu::MachinePeak& peakOf(Device& device, int threads);

}  // namespace stepscope
