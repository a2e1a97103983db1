// What this machine can do: measured once (kernels/cpu/loops/machine_peak.h), and kept in the build cache for a day.
#pragma once

#include <string>

#include "engine/build/build_log.h"
#include "engine/build/options.h"
#include "kernels/cpu/loops/machine_peak.h"

namespace stepscope {

// Of a device with kernels of its own: kernels/cuda_device/device_peak.h. Else as this process knows it, else as the cache
// of the options has it, else measured (about 0.3 s, then kept). Of the last two `log` gets a span "cache roofs" with the
// reason; may be null. Any thread.
const cpu::MachinePeak& roofsOf(const TrainOptions& options, int threads, BuildLog* log);

// Measures anew, or takes what this process has measured, and keeps that in place of what the cache has.
const cpu::MachinePeak& measureRoofs(const TrainOptions& options, int threads);

// The text of an entry, and back; nothing where it is none.
std::string roofsText(const cpu::MachinePeak& peak);
std::optional<cpu::MachinePeak> roofsFrom(const std::string& text);

}  // namespace stepscope
