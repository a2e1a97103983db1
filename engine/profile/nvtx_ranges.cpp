#include "engine/profile/nvtx_ranges.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

enum Colour : std::uint32_t {
  kRun = 0xff808080,
  kStep = 0xffb0b0b0,
  kForward = 0xff4c78a8,
  kBackward = 0xfff58518,
  kOptimizer = 0xff54a24b,
  kModule = 0xffb279a2,
  kNode = 0xffeeca3b,
};

// Nodes that are computed again belong to the backward phase.
std::string phaseOf(const Node& node) {
  return std::string(phaseName(node.phase == Phase::kRecompute ? Phase::kBackward : node.phase));
}

Colour colourOf(const std::string& phase) {
  return phase == "forward" ? kForward : phase == "optimizer" ? kOptimizer : kBackward;
}

}  // namespace

NvtxRanges::NvtxRanges(const nvtx::Tool& tool, const Graph& graph, const ExecutionPlan& plan) : tool_(tool) {
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Node& node = graph.node(plan.instructions[i].node);
    places_.push_back(
        {phaseOf(node), std::string(node.provenance.modulePath), instructionLabel(plan, graph, static_cast<int>(i))});
  }
}

void NvtxRanges::beginStep(std::int64_t number) {
  open_ = nullptr;
  tool_.push(fmt::format("step {}", number), kStep);
}

void NvtxRanges::endStep() {
  leave();
  tool_.pop();
}

void NvtxRanges::leave() {
  if (!open_) return;
  if (!open_->module.empty()) tool_.pop();
  tool_.pop();
  open_ = nullptr;
}

void NvtxRanges::begin(int instruction) {
  const Place& place = places_[static_cast<std::size_t>(instruction)];
  if (!open_ || open_->phase != place.phase || open_->module != place.module) {
    const bool stays = open_ && open_->phase == place.phase;
    if (stays && !open_->module.empty()) tool_.pop();
    if (!stays) {
      leave();
      tool_.push(place.phase, colourOf(place.phase));
    }
    if (!place.module.empty()) tool_.push(place.module, kModule);
    open_ = &place;
  }
  tool_.push(place.node, kNode);
}

void NvtxRanges::end() { tool_.pop(); }

NvtxRun::NvtxRun(const nvtx::Tool& tool, const std::string& name) : tool_(tool), range_(tool.start(name, kRun)) {}
NvtxRun::~NvtxRun() { tool_.end(range_); }

}  // namespace stepscope
