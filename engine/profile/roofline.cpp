#include "engine/profile/roofline.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope {
namespace {

// Follows the plan with a clock of bytes.
class Follower {
 public:
  Follower(const ExecutionPlan& plan, const cpu::MachinePeak& peak)
      : plan_(plan), peak_(peak), touched_(plan.buffers.size(), kNever) {}

  void beginStep() {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Home home = plan_.buffers[b].home;
      if (home == Home::kArena || home == Home::kDynamic) touched_[b] = kNever;
      if (home == Home::kInput) touched_[b] = clock_;  // the batch was copied just now
    }
  }

  InstructionRoof run(const Instruction& instruction) {
    InstructionRoof roof;
    roof.levelBytes.resize(peak_.levels.size());
    if (instruction.view || instruction.dynamic) return roof;
    const std::int64_t all = instruction.bytesRead + instruction.bytesWritten;
    for (std::size_t k = 0; k < instruction.inputs.size(); ++k)
      if (const std::int64_t bytes = bytesReadOf(plan_, instruction, k); bytes > 0)
        roof.levelBytes[level(instruction.inputs[k], bytes, all)] += bytes;
    for (std::size_t k = 0; k < instruction.outputs.size(); ++k)
      if (const std::int64_t bytes = bytesWrittenOf(plan_, instruction, k); bytes > 0)
        roof.levelBytes[level(instruction.outputs[k], bytes, all)] += bytes;
    clock_ += all;
    for (const auto* operands : {&instruction.inputs, &instruction.outputs})
      for (const int b : *operands)
        if (b >= 0) touched_[static_cast<std::size_t>(plan_.root(b))] = clock_;
    bound(instruction, roof);
    return roof;
  }

 private:
  static constexpr std::int64_t kNever = -1;

  std::size_t level(int buffer, std::int64_t bytes, std::int64_t all) const {
    const std::int64_t last = touched_[static_cast<std::size_t>(plan_.root(buffer))];
    const std::int64_t needed = last == kNever ? all : clock_ - last + bytes;
    std::size_t level = 0;
    while (level + 1 < peak_.levels.size() && peak_.levels[level].capacity < needed) ++level;
    return level;
  }

  // Of a product, the type of its operands; all else is computed in float32.
  static DType productType(const Instruction& instruction) {
    const auto& in = instruction.spec().inputs;
    return in.size() > 1 && in[0].dtype == in[1].dtype ? in[0].dtype : DType::kF32;
  }

  void bound(const Instruction& instruction, InstructionRoof& roof) const {
    const double peak = peak_.operationsIn(productType(instruction)), compute = peak > 0 ? instruction.flops / peak : 0;
    double traffic = 0, largest = 0;
    std::string_view slowest;
    for (std::size_t k = 0; k < roof.levelBytes.size(); ++k) {
      const double seconds =
          peak_.levels[k].bytesPerSecond > 0 ? static_cast<double>(roof.levelBytes[k]) / peak_.levels[k].bytesPerSecond : 0;
      traffic += seconds;
      if (seconds > largest) {
        largest = seconds;
        slowest = peak_.levels[k].name;
      }
    }
    roof.ns = std::max(compute, traffic) * 1e9;
    if (roof.ns > 0) roof.boundBy = compute >= traffic ? "compute" : slowest;
  }

  const ExecutionPlan& plan_;
  const cpu::MachinePeak& peak_;
  std::vector<std::int64_t> touched_;  // by root buffer: the clock after it was touched last
  std::int64_t clock_ = 0;
};

}  // namespace

std::vector<InstructionRoof> rooflineOf(const ExecutionPlan& plan, const cpu::MachinePeak& peak) {
  std::vector<InstructionRoof> roofs;
  if (peak.levels.empty()) return std::vector<InstructionRoof>(plan.instructions.size());
  Follower follower(plan, peak);
  for (int step = 0; step < 2; ++step) {  // the second knows what the first left in the caches
    follower.beginStep();
    roofs.clear();
    for (const Instruction& instruction : plan.instructions) roofs.push_back(follower.run(instruction));
  }
  return roofs;
}

snapshot::MachinePeak toSnapshot(const cpu::MachinePeak& peak) {
  snapshot::MachinePeak out;
  out.set_threads(peak.threads);
  out.set_operations_per_second(peak.operationsPerSecond);
  for (const cpu::MemoryLevel& level : peak.levels) {
    auto& o = *out.add_levels();
    o.set_name(std::string(level.name));
    o.set_capacity(level.capacity);
    o.set_measured_over(level.workingSet);
    o.set_bytes_per_second(level.bytesPerSecond);
  }
  out.set_ns(peak.ns);
  out.set_waiting(peak.waiting);
  return out;
}

void addRoofline(const ExecutionPlan& plan, const cpu::MachinePeak& peak, snapshot::Plan& out) {
  *out.mutable_peak() = toSnapshot(peak);
  const std::vector<InstructionRoof> roofs = rooflineOf(plan, peak);
  for (std::size_t i = 0; i < roofs.size(); ++i) {
    if (roofs[i].ns <= 0) continue;
    auto& roof = *out.mutable_instructions(static_cast<int>(i))->mutable_roof();
    roof.set_ns(roofs[i].ns);
    roof.set_bound_by(std::string(roofs[i].boundBy));
    for (const std::int64_t bytes : roofs[i].levelBytes) roof.add_level_bytes(bytes);
  }
}

std::string peakText(const cpu::MachinePeak& peak) {
  std::string text = fmt::format("products {:.1f} GF/s", peak.operationsPerSecond * 1e-9);
  if (peak.bfloat16PerSecond > 0) text += fmt::format(" ({:.1f} in bfloat16)", peak.bfloat16PerSecond * 1e-9);
  if (peak.float16PerSecond > 0) text += fmt::format(" ({:.1f} in float16)", peak.float16PerSecond * 1e-9);
  for (const cpu::MemoryLevel& level : peak.levels)
    text += fmt::format(", {} {:.1f} GB/s", level.name, level.bytesPerSecond * 1e-9);
  if (peak.threads == 0) return text + " on the device";
  text += fmt::format(" with {} thread{}", peak.threads, peak.threads == 1 ? "" : "s");
  return disturbed(peak) ? text + "; " + disturbanceText(peak) : text;
}

}  // namespace stepscope
