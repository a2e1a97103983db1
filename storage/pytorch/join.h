// What PyTorch measured of a model, laid beside what a recorded run of ours took: by module path and order of operators.
//
// Time    Operators of the trace are aligned in order with the imported nodes of the run's graph: the kind has to fit
//         ("aten::linear" and MatMul or Gemm), and where both know the shape of the weight that too. A module of the trace
//         is the path that most of its operators fell on; pairs that contradict it are given up. What has no partner belongs
//         to the operator before it in its module. Nodes that were fused into one instruction are one row.
// Memory  What was allocated when most was is aligned in order of allocation with the buffers that live at the plan's peak:
// the
//         bytes have to be the same (rounded to 512); of several ways that with more equal Python lines counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/project.h"
#include "storage/pytorch/kineto_trace.h"
#include "storage/pytorch/memory_snapshot.h"

namespace stepscope::storage {

// One thing that both did, or that one of them did alone (the other's text is empty).
struct PyTorchRow {
  std::string phase;  // forward, backward, recompute, optimizer, step; of memory activations, persistent, peak
  std::string module, theirs, ours;
  double theirAmount = 0, ourAmount = 0;  // nanoseconds of a step, or bytes
};

struct PyTorchJoin {
  std::string kind;                             // time, memory
  std::vector<PyTorchRow> rows;                 // in our order, then theirs alone
  std::int64_t joined = 0;                      // rows that both have, sums aside
  std::int64_t theirsAlone = 0, oursAlone = 0;  // rows that could not be joined
  std::vector<std::string> notes;               // what the numbers mean, what to be careful with
};

// Errors: kInvalidArgument where the trace is not of this model: says how much fits and the first that does not; kNotFound
// where the run has no graph, no plan, or no recorded instructions; kLimitExceeded.
Result<PyTorchJoin> joinTime(const Project& project, std::int64_t run, const KinetoTrace& trace, const std::string& file);
Result<PyTorchJoin> joinMemory(const Project& project, std::int64_t run, const MemorySnapshot& snapshot,
                               const std::string& file);

// The rows as a new session of the run; and the newest of each kind, empty where there is none. A file of a version before
// 11 that is opened for reading has none, which is no error.
Status writeJoin(const Project& project, std::int64_t run, const PyTorchJoin& join, const std::string& file);
Result<std::vector<PyTorchJoin>> readJoins(const Project& project, std::int64_t run);

}  // namespace stepscope::storage
