// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/without_casts.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace stepscope {
namespace {

bool isFloat(const snapshot::Value* value) {
  constexpr std::array<std::string_view, 4> kFloats = {"float32", "float64", "float16", "bfloat16"};
  return value != nullptr && std::find(kFloats.begin(), kFloats.end(), value->dtype()) != kFloats.end();
}

bool isHidden(const GraphSnapshot& graph, const snapshot::Node& node) {
  return node.op() == "Cast" && node.inputs_size() == 1 && node.outputs_size() == 1 &&
         isFloat(graph.value(node.inputs(0))) && isFloat(graph.value(node.outputs(0))) &&
         !graph.consumers(node.outputs(0)).empty();
}

}  // namespace

WithoutCasts WithoutCasts::make(std::shared_ptr<const GraphSnapshot> from) {
  WithoutCasts result;
  std::unordered_map<int, int> source;  // value that a hidden cast makes → value that stays
  const auto sourceOf = [&](int value) {
    const auto found = source.find(value);
    return found == source.end() ? value : found->second;
  };
  // In execution order: the source of a cast of a cast is known when its reader comes.
  for (const snapshot::Node& node : from->graph().nodes()) {
    if (!isHidden(*from, node)) continue;
    const int value = sourceOf(node.inputs(0));
    source[node.outputs(0)] = value;
    result.standIn[node.id()] = from->producer(value);
  }
  if (source.empty()) {
    result.graph = std::move(from);
    return result;
  }
  snapshot::Graph rest = from->graph();
  rest.clear_nodes();
  for (const snapshot::Node& node : from->graph().nodes()) {
    if (result.standIn.contains(node.id())) continue;
    snapshot::Node& kept = *rest.add_nodes() = node;
    for (int& value : *kept.mutable_inputs()) value = sourceOf(value);
  }
  result.graph = GraphSnapshot::make(std::move(rest));
  return result;
}

}  // namespace stepscope
