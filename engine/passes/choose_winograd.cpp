#include "engine/passes/choose_winograd.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope {
namespace {

// Thresholds of the table in the header.
constexpr std::int64_t kLeastChannels = 32, kLeastWork = 4096;  // work: tiles times the smaller number of channels
constexpr std::int64_t kLeastTiles = 64, kLeastTilesOfWeights = 32;

// Operands of a Conv or one of its gradients; -1 is the result.
struct Roles {
  int x, w, y;
};
std::optional<Roles> rolesOf(const Node& node) {
  if (node.domain.empty() && node.op == "Conv") return Roles{0, 1, -1};
  if (node.domain != kInternalDomain) return std::nullopt;
  if (node.op == "ConvInputGrad") return Roles{-1, 1, 0};
  if (node.op == "ConvWeightGrad") return Roles{1, -1, 0};
  return std::nullopt;
}

class Chooser {
 public:
  Chooser(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Status run() {
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const auto roles = rolesOf(node);
      if (!roles || !isSmallWindow(node, *roles)) continue;
      if (std::string condition = refusal(node, *roles); !condition.empty()) {
        context_.miss(id, std::move(condition));
        continue;
      }
      Node& chosen = graph_.mutableNode(id);
      chosen.attrs.set("winograd", std::int64_t{1});
      graph_.logChange(id);
      context_.match();
    }
    return {};
  }

 private:
  const Value& operand(const Node& node, int role) const {
    return graph_.value(role < 0 ? node.output(0) : node.input(static_cast<std::size_t>(role)));
  }
  Dims dimsOf(const Node& node, int role) const {
    const auto& shape = operand(node, role).type.shape;
    return (shape ? knownDims(*shape) : std::nullopt).value_or(Dims{});
  }

  // A window of 3 x 3 that could be meant: others are not worth a word.
  bool isSmallWindow(const Node& node, const Roles& roles) const {
    const Dims w = dimsOf(node, roles.w);
    return w.size() == 4 && w[2] == 3 && w[3] == 3 && node.attrs.integer("group", 1) == 1;
  }

  std::string refusal(const Node& node, const Roles& roles) const {
    for (const char* name : {"strides", "dilations"})
      for (const std::int64_t step : node.attrs.integers(name))
        if (step != 1) return fmt::format("{} of {}; expected 1", name, step);
    for (const std::int64_t pad : node.attrs.integers("pads"))
      if (pad > 1) return fmt::format("padding of {}; expected 0 or 1", pad);
    for (const int role : {roles.x, roles.y})
      if (operand(node, role).layout != Layout::kChannels16)
        return fmt::format("'{}' does not lie in {}", operand(node, role).name, layoutName(Layout::kChannels16));
    const Dims x = dimsOf(node, roles.x), y = dimsOf(node, roles.y);
    const std::int64_t channels = std::min(x[1], y[1]), tiles = y[0] * ((y[2] + 3) / 4) * ((y[3] + 3) / 4),
                       least = roles.w < 0 ? kLeastTilesOfWeights : kLeastTiles;
    if (channels < kLeastChannels) return fmt::format("{} channels; expected {} or more", channels, kLeastChannels);
    if (tiles < least)
      return fmt::format(
          "{} tiles of 4 x 4 results; expected {} or more: transforming the weights costs more than they save", tiles,
          least);
    if (tiles * channels < kLeastWork)
      return fmt::format("{} tiles of {} channels; expected a product of {} or more", tiles, channels, kLeastWork);
    return {};
  }

  Graph& graph_;
  PassContext& context_;
};

}  // namespace

Status chooseWinograd(Graph& graph, PassContext& context) { return Chooser(graph, context).run(); }

}  // namespace stepscope
