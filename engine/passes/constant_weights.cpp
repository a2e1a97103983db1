#include "engine/passes/constant_weights.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/passes/pattern.h"
#include "engine/passes/weight_role.h"

namespace stepscope {
namespace {

std::optional<Tensor> floatsOf(const Node& node) {
  if (const Tensor* value = node.attrs.tensor("value"))
    return isFloating(value->dtype()) ? std::optional<Tensor>(*value) : std::nullopt;
  if (const AttrValue* list = node.attrs.find("value_floats"))
    if (const auto* numbers = std::get_if<std::vector<float>>(list))
      return Tensor::of<float>({static_cast<std::int64_t>(numbers->size())}, *numbers);
  return std::nullopt;
}

bool allFinite(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    if (!std::isfinite(elementAsDouble(tensor.view(), i))) return false;
  return true;
}

}  // namespace

Status constantWeights(Graph& graph, PassContext& context) {
  const UseTable uses = graph.uses();
  std::unordered_map<ValueId, ValueId> replacements;
  std::vector<std::pair<ValueId, std::string>> names;
  std::vector<NodeId> gone;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!isOp(node, "Constant") || !node.output(0)) continue;
    auto tensor = floatsOf(node);
    if (!tensor) continue;
    const ValueId out = node.output(0);
    // A Constant has no type before it is inferred; whether a table has two axes counts.
    const ValueType type{ValueKind::kTensor, tensor->dtype(), shapeOf(tensor->dims())};
    graph.mutableValue(out).type = type;
    const auto role = weightRole(graph, uses, out);
    const bool number = tensor->dims().empty() && role && role->what != "weight";
    if (!role || number || !allFinite(*tensor)) continue;
    const std::string name = graph.value(out).name;
    context.note(fmt::format("'{}': {}", name, role->text(graph)));
    const ValueId parameter = graph.addValue(name + "_parameter", type, ValueRole::kInitializer);
    graph.mutableValue(parameter).data =
        std::make_shared<const Tensor>(tensor->clone());  // the node of a kept stage has the other
    replacements[out] = parameter;
    names.emplace_back(parameter, name);
    gone.push_back(id);
    context.match();
  }
  graph.replaceAllUses(replacements);
  graph.removeNodes(gone);
  for (const auto& [parameter, name] : names) graph.renameValue(parameter, name);
  return {};
}

std::vector<bool> madeFromConstants(const Graph& graph) {
  std::vector<bool> made(graph.valueCapacity(), false);
  for (const Edit& edit : graph.edits())
    if (edit.kind == Edit::Kind::kReplaceUses && edit.pass.view() == kConstantWeightsPass)
      made[static_cast<std::size_t>(edit.to.index)] = true;
  return made;
}

}  // namespace stepscope
