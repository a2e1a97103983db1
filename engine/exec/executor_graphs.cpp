// Runs of whole steps as recorded graphs of the device.
#include <fmt/format.h>

#include <algorithm>

#include "engine/exec/executor.h"
#include "kernels/index.h"

namespace stepscope {
// Empty: graphs may serve this run.
std::string Executor::reasonAgainstGraphs(int begin, int end, const RunOptions& options) const {
  if (!options.graphs) return "option 'cuda.graphs' is off";
  if (options.before || options.after)
    return "somebody looks after every instruction (watched values, breaks, statistics, the flight recorder)";
  if (options.spans) return "the times of instructions are recorded (option 'record')";
  if (options.marks) return "instructions have ranges for NVIDIA's tools (option 'record.nvtx')";
  if (!graphs_.refused.empty()) return graphs_.refused;
  const auto isBorder = [&](int i) {
    return i == static_cast<int>(instructions_.size()) ||
           std::ranges::any_of(graphs_.pieces, [&](const GraphPiece& piece) { return piece.begin == i; });
  };
  if (!isBorder(begin) || !isBorder(end)) return "the step stops inside";
  return "";
}

void Executor::findPieces() {
  if (graphs_.known) return;
  graphs_.known = true;
  graphs_.pieces = graphPieces(plan_);
  graphs_.recordings.resize(graphs_.pieces.size());
}

// Which pieces of [begin, end) a run without graphs has run as a whole.
void Executor::noteIssued(int begin, int end, const RunOptions& options, const std::string& reason) {
  const int before = issue_.alone;
  for (int i = begin; i < end; ++i)
    issue_.alone += todo_[at(i)] & kKernel && (options.update || !(todo_[at(i)] & kUpdateOnly)) ? 1 : 0;
  if (issue_.alone > before && issue_.reason.find(reason) == std::string::npos)
    issue_.reason += (issue_.reason.empty() ? "" : ", ") + reason;
  for (std::size_t p = 0; p < graphs_.pieces.size(); ++p) {
    const GraphPiece& piece = graphs_.pieces[p];
    if (piece.begin < begin || piece.end > end || piece.first < 0) continue;
    const bool ran = options.update || !plan_.instructions[at(piece.first)].updateEntry;
    graphs_.recordings[p].warm |= ran && conditionsHold(piece.first);
  }
}

Result<int> Executor::runGraphs(int begin, int end, const RunOptions& options) {
  if (!graphs_.key.data()) {
    SS_ASSIGN(graphs_.key, device_.allocate(sizeof(graphs_.seedAndStep)));
  }
  graphs_.seedAndStep = {options.key.seed, options.key.step};
  SS_TRY(device_.copy(graphs_.key.data(), graphs_.seedAndStep.data(), sizeof(graphs_.seedAndStep), 0));
  for (std::size_t p = 0; p < graphs_.pieces.size(); ++p) {
    const GraphPiece& piece = graphs_.pieces[p];
    if (piece.end <= begin || piece.begin >= end) continue;
    SS_ASSIGN(const bool replayed, replayPiece(p, options));
    if (replayed) continue;
    SS_ASSIGN(const int reached, runAll(piece.begin, piece.end, options));
    if (reached < piece.end) return reached;
    noteIssued(piece.begin, piece.end, options,
               !graphs_.refused.empty() ? graphs_.refused
               : piece.recordable       ? "the first run of a part goes one by one"
                                        : piece.reason);
  }
  return end;
}

// False: the piece is to be run instruction by instruction.
Result<bool> Executor::replayPiece(std::size_t index, const RunOptions& options) {
  const GraphPiece& piece = graphs_.pieces[index];
  StepGraphs::Recording& recording = graphs_.recordings[index];
  if (!piece.recordable || !recording.warm || !graphs_.refused.empty()) return false;
  for (const Wait& wait : plan_.instructions[at(piece.first)].waits)
    if (wait.host) SS_TRY(device_.synchronise(*instructions_[at(wait.instruction)].event));
  if (!options.update && plan_.instructions[at(piece.first)].updateEntry) return false;
  if (!conditionsHold(piece.first)) return false;
  if (options.cancel && piece.begin < options.cancelBelow && options.cancel->exchange(false))
    return tl::make_unexpected(cancelledBefore(piece.begin));
  if (!recording.graph || recording.saves != options.restoreState) {
    recording.graph.reset();
    if (const Status recorded = recordPiece(index, options); !recorded) {
      graphs_.refused = "no graph could be recorded: " + recorded.error().message;
      return false;
    }
  }
  written_.insert(written_.end(), recording.written.begin(), recording.written.end());
  SS_TRY(graphsOf(device_)->replay(*recording.graph));
  for (const int i : piece.eventsOut) SS_TRY(recordAfter(i));
  ++issue_.graphs;
  issue_.operations += recording.graph->operations();
  return true;
}

Status Executor::recordPiece(std::size_t index, const RunOptions& options) {
  const GraphPiece& piece = graphs_.pieces[index];
  StepGraphs::Recording& recording = graphs_.recordings[index];
  GraphSource& source = *graphsOf(device_);
  // While a graph is recorded nothing can be allocated.
  for (int i = piece.begin; i < piece.end; ++i)
    if (options.restoreState && todo_[at(i)] & kSaves) SS_TRY(reserveSaved(i));
  const std::size_t before = written_.size();
  SS_TRY(source.beginGraph(graphs_.key.data()));
  const auto put = [&]() -> Status {
    for (int i = piece.begin; i < piece.end; ++i) {
      if (!(todo_[at(i)] & kKernel)) continue;
      const Instruction& instruction = plan_.instructions[at(i)];
      // What lies before the piece is on the device before the graph is.
      for (const Wait& wait : instruction.waits)
        if (!wait.host && wait.instruction >= piece.begin)
          SS_TRY(device_.wait(instruction.stream, *instructions_[at(wait.instruction)].event));
      if (options.restoreState && todo_[at(i)] & kSaves) SS_TRY(saveState(i));
      SS_TRY(runPlain(i, options));
      if (todo_[at(i)] & kOrdered) SS_TRY(recordAfter(i));
    }
    return {};
  };
  const Status recorded = put();
  auto graph = source.endGraph();
  recording.written.assign(written_.begin() + static_cast<std::ptrdiff_t>(before), written_.end());
  written_.resize(before);
  SS_TRY(recorded);
  if (!graph) return tl::make_unexpected(std::move(graph).error());
  recording.graph = std::move(*graph);
  recording.saves = options.restoreState;
  return {};
}

}  // namespace stepscope
