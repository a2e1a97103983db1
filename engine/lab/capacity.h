// What fits where: plans of one step for many extents of a dimension, with and without recompute, without running any.
//
// A point is the plan that a session would run with that extent: built, specialised, its kernels asked for their workspaces,
// its arena packed. No state, no batch and no arena is allocated, so a step may be planned that is far larger than this
// machine. Extents are doubled until the step does not fit, then halved in between: the largest one that fits is exact, as
// long as a larger extent needs no less memory. Times are the sums of the least times of the instructions
// (engine/profile/roofline.h), so a step takes longer.
//
// Errors: those of building the first point; kCancelled. An extent that the model cannot have (more positions than a table
// holds) ends the range, and CapacityReport::ended says so.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "engine/build/builder.h"
#include "engine/snapshot/lab.pb.h"
#include "kernels/cpu/loops/machine_peak.h"

namespace stepscope {

// What is planned. `request`: its options say all but the extents; its firstBatch is not used.
struct CapacitySubject {
  std::shared_ptr<const ImportedModel> model;
  BuildRequest request;
  // A batch for the inputs of `graph` with this extent of the dimension (0: as it is); only its arrays' types are looked at.
  std::function<Result<Batch>(const Graph& graph, std::int64_t extent)> batchOf;
  std::string dimension;                   // that varies; empty: nothing does
  std::string batchDimension;              // whose extent a point tells; empty: first axis of the first input
  const cpu::MachinePeak* peak = nullptr;  // null: times are not predicted
  std::atomic<bool>* cancelled = nullptr;  // ends the search; taken back by it
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;  // may be null
};

// `question`: dimension is that of the subject; least, most and memory_bytes are set.
Result<snapshot::CapacityReport> planCapacity(CapacitySubject subject, const snapshot::GetCapacity& question);

}  // namespace stepscope
