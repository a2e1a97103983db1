// Instructions compared with what the machine allows: the tables machine_peaks and roofline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/error.h"
#include "storage/project.h"
#include "storage/sqlite.h"
#include "storage/timing.h"

namespace stepscope::storage {

// Names of peaks.
inline constexpr std::string_view kCompute = "compute", kCoreCaches = "core caches", kSharedCache = "shared cache",
                                  kMemory = "memory";

struct PeakRow {
  std::string name;
  double perSecond = 0;  // operations for kCompute, else bytes
  std::int64_t capacity = 0, measuredOver = 0;
  int threads = 0;
  double waiting = 0;  // share of the time for which they had no core (peaksDisturbed)
};

struct RooflineRow {
  std::size_t instruction = 0;  // index into Timing.instructions
  std::int64_t bytes = 0, coreCacheBytes = 0, sharedCacheBytes = 0, memoryBytes = 0;
  std::optional<double> intensity;            // operations per byte
  double roofNs = 0;                          // least time, above 0
  std::optional<std::int64_t> measuredBytes;  // what its kernels moved in the newest step with counters; absent: not counted
  std::string boundBy;
  // Of the recorded executions; absent when there is none.
  std::optional<double> share;  // roofNs / median
  double aboveNs = 0;           // median - roofNs; negative when it was faster than the model of the caches allows
};

struct Roofline {
  std::vector<PeakRow> peaks;     // compute first; empty when no peak was measured
  std::vector<RooflineRow> rows;  // in order of the plan
  std::string counted;            // what measuredBytes are, for people; empty: no step has counters
};

// Of the plan that `timing` shows. Measured figures come from `timing`, so that a run that was killed has them too.
Result<Roofline> readRoofline(const Project& project, const Timing& timing);

// Fills executions, median_ns, share and measured_bytes of all plans of a run from its recorded spans; steps of warm-up
// count only where there are no others, and very long runs are sampled evenly. Called by the writer when the run ends.
Status measureRoofline(const Connection& connection, std::int64_t run);

}  // namespace stepscope::storage
