#include "engine/train/density.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

std::string share(const char* kind, const std::string& name, std::int64_t valid, std::int64_t total, const std::string& reason) {
  return fmt::format("{} '{}': {} of {} valid ({:.1f} %), {}", kind, name, valid, total,
                     total > 0 ? 100.0 * static_cast<double>(valid) / static_cast<double>(total) : 0.0, reason);
}

// The label that the loss ignores, found at the node that reads this input.
std::optional<std::int64_t> ignoredLabel(const Graph& graph) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if ((node.op == "SoftmaxCrossEntropyLoss" || node.op == "NegativeLogLikelihoodLoss") && node.attrs.has("ignore_index"))
      return node.attrs.integer("ignore_index", -100);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> inspectDensity(const Graph& graph, const Batch& batch, const TrainOptions& options) {
  std::vector<std::string> notes;
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    const auto array = batch.arrays.find(input.name);
    if (array == batch.arrays.end() || !isInteger(input.type.dtype)) continue;
    const auto elements = intElements(array->second.view());
    const auto total = static_cast<std::int64_t>(elements.size());
    const auto count = [&](auto keep) {
      std::int64_t n = 0;
      for (const std::int64_t e : elements) n += keep(e);
      return n;
    };
    const InputRole role = inferRole(graph, id);
    if (role.kind == InputRole::Kind::kLabels) {
      if (const auto ignored = ignoredLabel(graph))
        notes.push_back(share("labels", input.name, count([&](std::int64_t e) { return e != *ignored; }), total, fmt::format("ignored label {}", *ignored)));
    } else if (role.kind == InputRole::Kind::kMask) {
      notes.push_back(share("mask", input.name, count([](std::int64_t e) { return e != 0; }), total, "zeros are padding"));
    } else if (const auto pad = options.pad.find(input.name); pad != options.pad.end()) {
      notes.push_back(share("tokens", input.name, count([&](std::int64_t e) { return e != pad->second; }), total, fmt::format("padding value {} set by --pad", pad->second)));
    } else if (role.kind == InputRole::Kind::kTokens) {
      for (const ValueId other : graph.inputs()) {
        const auto mask = batch.arrays.find(graph.value(other).name);
        if (other == id || mask == batch.arrays.end() || inferRole(graph, other).kind != InputRole::Kind::kMask) continue;
        if (mask->second.dims() != array->second.dims()) continue;
        const auto bits = intElements(mask->second.view());
        std::int64_t valid = 0;
        for (const std::int64_t b : bits) valid += b != 0;
        notes.push_back(share("tokens", input.name, valid, total, fmt::format("padding where '{}' is 0", graph.value(other).name)));
        break;
      }
    }
  }
  return notes;
}

}  // namespace stepscope
