#include "engine/exec/graph_pieces.h"

#include <algorithm>
#include <string_view>

#include "kernels/index.h"

namespace stepscope {
namespace {

// Empty: nothing of it needs the host.
std::string_view reasonAgainst(const ExecutionPlan& plan, const Instruction& instruction) {
  if (instruction.view) return "";
  if (instruction.onHost) return "instructions of the CPU";
  if (plan.deviceRanks && instruction.collective) return "collectives, at which ranks meet";
  if (instruction.dynamic) return "extents that are known only at run time";
  const auto onHost = [&](int buffer) { return buffer >= 0 && plan.buffers[at(buffer)].space == Space::kHost; };
  if (instruction.kind == InstructionKind::kCopy &&
      (std::ranges::any_of(instruction.inputs, onHost) || std::ranges::any_of(instruction.outputs, onHost)))
    return "copies between host and device";
  for (const int b : instruction.inputs)
    if (onHost(b) && plan.buffers[at(plan.root(b))].home != Home::kConstant) return "values that a kernel reads on the host";
  return "";
}

bool hostWaits(const Instruction& instruction) {
  return std::ranges::any_of(instruction.waits, [](const Wait& wait) { return wait.host; });
}

}  // namespace

std::vector<GraphPiece> graphPieces(const ExecutionPlan& plan) {
  std::vector<GraphPiece> pieces;
  const int count = static_cast<int>(plan.instructions.size());
  for (int i = 0; i < count; ++i) {
    const Instruction& instruction = plan.instructions[at(i)];
    const std::string_view reason = reasonAgainst(plan, instruction);
    const bool border = pieces.empty() || i == plan.firstOptimizer || i == plan.firstCommit;
    const auto fits = [&](const GraphPiece& piece) {
      if (instruction.view) return true;
      if (piece.reason != reason) return false;
      if (piece.first < 0 || !reason.empty()) return true;
      const Instruction& first = plan.instructions[at(piece.first)];
      return !hostWaits(instruction) && first.predicates == instruction.predicates &&
             first.updateEntry == instruction.updateEntry;
    };
    if (border || !fits(pieces.back())) pieces.push_back({i, i, false, -1, {}, std::string(reason)});
    GraphPiece& piece = pieces.back();
    piece.end = i + 1;
    if (instruction.view) continue;
    // Views in front of it said nothing.
    if (piece.first < 0) {
      piece.first = i;
      piece.reason = reason;
    }
  }
  for (GraphPiece& piece : pieces) {
    int operations = 0;
    for (int i = piece.begin; i < piece.end; ++i) operations += plan.instructions[at(i)].view ? 0 : 1;
    if (piece.reason.empty() && operations < kFewestOperations) piece.reason = "parts of few instructions";
    piece.recordable = piece.reason.empty();
  }
  for (const GraphPiece& piece : pieces)
    for (int i = piece.begin; i < piece.end; ++i)
      for (const Wait& wait : plan.instructions[at(i)].waits) {
        if (wait.instruction >= piece.begin) continue;
        const auto of = std::ranges::upper_bound(pieces, wait.instruction, {}, &GraphPiece::begin) - 1;
        if (std::ranges::find(of->eventsOut, wait.instruction) == of->eventsOut.end())
          of->eventsOut.push_back(wait.instruction);
      }
  return pieces;
}

}  // namespace stepscope
