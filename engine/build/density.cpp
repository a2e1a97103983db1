#include "engine/build/density.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/build/input_role.h"
#include "engine/ops/class_loss.h"
#include "engine/snapshot/utf8.h"
#include "kernels/dispatch.h"

namespace stepscope {
namespace {

// The label that the loss ignores, found at the node that reads this input.
std::optional<std::int64_t> labelThatDoesNotCount(const Graph& graph) {
  for (const NodeId id : graph.order()) {
    if (const auto ignored = ignoredLabel(graph, graph.node(id))) return ignored;
  }
  return std::nullopt;
}

}  // namespace

DensityProbe::DensityProbe(const Graph& graph, const Batch& batch, const TrainOptions& options) {
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    const auto array = batch.arrays.find(input.name);
    if (array == batch.arrays.end() || !isInteger(input.type.dtype)) continue;
    const InputRole role = inferRole(graph, id);
    if (role.kind == InputRole::Kind::kLabels) {
      if (const auto ignored = labelThatDoesNotCount(graph))
        entries_.push_back({input.name, "labels", fmt::format("ignored label {}", *ignored), ignored, {}});
    } else if (role.kind == InputRole::Kind::kMask) {
      entries_.push_back({input.name, "mask", "zeros are padding", 0, {}});
    } else if (const auto pad = options.pad.find(input.name); pad != options.pad.end()) {
      entries_.push_back({input.name, "tokens", fmt::format("padding value {} set by --pad", pad->second), pad->second, {}});
    } else if (role.kind == InputRole::Kind::kTokens) {
      for (const ValueId other : graph.inputs()) {
        const std::string& name = graph.value(other).name;
        const auto mask = batch.arrays.find(name);
        if (other == id || mask == batch.arrays.end() || inferRole(graph, other).kind != InputRole::Kind::kMask) continue;
        if (mask->second.dims() != array->second.dims()) continue;
        entries_.push_back({input.name, "tokens", fmt::format("padding where '{}' is 0", name), std::nullopt, name});
        break;
      }
    }
  }
}

std::vector<snapshot::InputDensity> DensityProbe::measure(const Batch& batch) const {
  std::vector<snapshot::InputDensity> found;
  for (const Entry& entry : entries_) {
    const auto array = batch.arrays.find(entry.invalid ? entry.input : entry.mask);
    if (array == batch.arrays.end()) continue;
    const TensorView& view = array->second.view();
    const std::int64_t total = view.elements(), length = view.dims.empty() ? 1 : std::max<std::int64_t>(1, view.dims.back());
    const std::int64_t invalid = entry.invalid.value_or(0);
    std::int64_t valid = 0, shortest = length, longest = 0;
    for (std::int64_t row = 0; row < total; row += length) {
      std::int64_t n = 0;
      dispatchInteger(view.dtype, [&](auto tag) {
        const auto* elements = static_cast<const decltype(tag)*>(view.data) + row;
        n = std::count_if(elements, elements + length,
                          [&](auto element) { return static_cast<std::int64_t>(element) != invalid; });
      });
      shortest = std::min(shortest, n);
      longest = std::max(longest, n);
      valid += n;
    }
    snapshot::InputDensity d;
    d.set_input(toUtf8(entry.input));
    d.set_kind(entry.kind);
    d.set_valid(valid);
    d.set_total(total);
    d.set_reason(toUtf8(entry.reason));
    d.set_rows(total / length);
    d.set_shortest(total > 0 ? shortest : 0);
    d.set_longest(longest);
    found.push_back(std::move(d));
  }
  return found;
}

std::string densityText(const snapshot::InputDensity& d) {
  return fmt::format("{} '{}': {} of {} valid ({:.1f} %), {}", d.kind(), d.input(), d.valid(), d.total(),
                     d.total() > 0 ? 100.0 * static_cast<double>(d.valid()) / static_cast<double>(d.total()) : 0.0,
                     d.reason());
}

}  // namespace stepscope
