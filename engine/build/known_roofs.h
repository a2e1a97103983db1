// What this machine can do: measured (kernels/cpu/loops/machine_peak.h), and kept in the build cache.
//
// A peak is a maximum: every measurement is joined with what was kept before, and the better of each figure stays. A kept
// one counts for a day; one that was measured while others kept its threads from the cores (engine/profile/roofline.h:
// disturbed) is measured again by the next processes, until one was not disturbed, or for kMostDisturbed times.
#pragma once

#include <string>

#include "engine/build/build_cache.h"
#include "engine/build/build_log.h"
#include "engine/build/options.h"
#include "kernels/cpu/loops/machine_peak.h"

namespace stepscope {

// Of a device with kernels of its own: kernels/cuda_device/device_peak.h. Else as this process knows it, else as the cache
// of the options has it, else measured (about 0.3 s, then kept). Of the last two `log` gets a span "cache roofs" with the
// reason; may be null. Any thread.
const cpu::MachinePeak& roofsOf(const TrainOptions& options, int threads, BuildLog* log);

// Measures anew, several times where it is disturbed, or takes what this process has measured. Keeps the best of that and
// of what the cache has, which is what it returns where this process had measured nothing.
const cpu::MachinePeak& measureRoofs(const TrainOptions& options, int threads);

inline constexpr int kMostDisturbed = 8;  // measurements

// The better of both in every figure. They are of the same machine and number of threads.
cpu::MachinePeak bestOf(cpu::MachinePeak peak, const cpu::MachinePeak& other);

// What an entry answers.
CacheQuestion roofsQuestion(int threads);

// The text of an entry, and back; nothing where it is none.
std::string roofsText(const cpu::MachinePeak& peak);
std::optional<cpu::MachinePeak> roofsFrom(const std::string& text);

}  // namespace stepscope
