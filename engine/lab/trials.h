// What every option gives: the step as it is next to the step with one option changed, in turns, from one state and on the
// same batches.
//
// Both plans are built side by side on a copy of the state, so the session's state, place and plan stay as they are, and
// never more than these two are alive. A round is one step of each, the order alternates, and the state is put back before
// every step. The first step of each plan is not timed; it is looked at for parity: loss, gradients and parameters of the
// first batch. A step that takes less than a millisecond is repeated within its turn.
// A candidate whose plan is the same instruction by instruction is told so and not measured. With every session a plan is
// also compared with itself, made twice: "(nothing)"; and where the question asks for it, with itself made to wait for 5 %
// of every step, "(5 % slower)", which tells whether this machine is quiet enough to find so much. Statistics:
// engine/lab/paired_statistics.h; verdicts are corrected for all pairs of the session.
//
// Errors: kInvalidArgument and kNotFound for a question that leaves nothing to try; kOutOfMemory where the state does not
// fit into memory next to its copies; those of building and running the step as it is. What a candidate fails with stands in
// its trial. A cancelled session is no error: it tells what was measured.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/builder.h"
#include "engine/snapshot/lab.pb.h"
#include "engine/state/state.h"

namespace stepscope {

// What is tried. `request` is that of the present plan.
struct TrialSubject {
  std::shared_ptr<const ImportedModel> model;
  BuildRequest request;
  std::vector<Batch> batches;  // of one signature, taken in turns; at least one
  StateSnapshot start;         // of the step
  std::string batchDimension;  // symbol whose extent the question's batches are; empty: the batch cannot be changed
  std::int64_t batch = 0;      // its present extent
  // Batches for the inputs of `graph` under other options (dim), as many as `batches`.
  std::function<Result<std::vector<Batch>>(const Graph& graph, const TrainOptions& options)> batchesUnder;
  int cores = 1;
  bool roofs = false;                      // tell expected times, which measures the machine's peaks
  std::atomic<bool>* cancelled = nullptr;  // ends the session; taken back by it
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;  // may be null
  std::function<void(const snapshot::Trial& trial)> tried;  // as soon as one is done, before its verdict; may be null
};

// Seconds to minutes: two steps for each round of each candidate.
Result<snapshot::TrialsReport> runTrials(TrialSubject subject, const snapshot::GetTrials& question);

}  // namespace stepscope
