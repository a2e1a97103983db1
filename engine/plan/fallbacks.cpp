#include "engine/plan/fallbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace stepscope {
namespace {

bool runsOnHost(const Instruction& instruction) { return instruction.onHost && !instruction.view; }

std::string counted(std::int64_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

}  // namespace

Fallbacks fallbacksOf(const ExecutionPlan& plan, const Graph& graph) {
  Fallbacks found;
  if (plan.space == Space::kHost) return found;
  std::set<int> touched;  // memory that instructions of the CPU read or write
  for (const Instruction& instruction : plan.instructions) {
    if (!runsOnHost(instruction)) continue;
    Fallbacks::Op& op = found.ops[graph.node(instruction.node).op];
    if (op.count++ == 0) op.reason = instruction.onHostReason;
    found.hostWaits += std::ranges::any_of(instruction.waits, [](const Wait& wait) { return wait.host; }) ? 1 : 0;
    for (const auto* buffers : {&instruction.inputs, &instruction.outputs})
      for (const int b : *buffers)
        if (b >= 0) touched.insert(plan.root(b));
  }
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind != InstructionKind::kCopy) continue;
    // Of the two sides the one on the host: the batch and what is read at a launch are copied for other reasons.
    const Buffer& from = plan.buffers[static_cast<std::size_t>(instruction.inputs[0])];
    const int host = from.space == Space::kHost ? instruction.inputs[0] : instruction.outputs[0];
    if (from.home == Home::kInput || !touched.contains(plan.root(host))) continue;
    ++found.copies;
    found.bytes += plan.buffers[static_cast<std::size_t>(instruction.outputs[0])].bytes;
  }
  return found;
}

std::string Fallbacks::text() const {
  if (ops.empty()) return {};
  std::string names;
  int nodes = 0;
  for (const auto& [name, op] : ops) {
    nodes += op.count;
    names += fmt::format("{}{}{} ({})", names.empty() ? "" : ", ", op.count == 1 ? "" : fmt::format("{} × ", op.count), name,
                         op.reason);
  }
  return fmt::format("{} on the CPU: {}; in every step {} {} bytes for {}, and the host waits for the device {}",
                     counted(nodes, "node runs", "nodes run"), names, counted(copies, "copy moves", "copies move"), bytes,
                     nodes == 1 ? "it" : "them", counted(hostWaits, "time", "times"));
}

}  // namespace stepscope
