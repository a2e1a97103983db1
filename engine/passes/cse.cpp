#include "engine/passes/cse.h"

#include <fmt/format.h>

#include <cstring>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

// Bytes that are equal exactly when the attribute values are (a hash would have to be verified anyway).
void appendAttribute(std::string& key, const AttrValue& value) {
  key += static_cast<char>('0' + value.index());
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        const auto raw = [&](const void* data, std::size_t bytes) {
          key += fmt::format("{}:", bytes);
          key.append(static_cast<const char*>(data), bytes);
        };
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, float>)
          raw(&v, sizeof v);
        else if constexpr (std::is_same_v<T, std::string>)
          raw(v.data(), v.size());
        else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<float>>)
          raw(v.data(), v.size() * sizeof v[0]);
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          for (const std::string& s : v) raw(s.data(), s.size());
        else if constexpr (std::is_same_v<T, Tensor>)
          key += fmt::format("{}", fmt::ptr(v.data()));  // tensors in attributes: the same memory only
        else
          for (const Tensor& t : v) key += fmt::format("{},", fmt::ptr(t.data()));
      },
      value);
}

}  // namespace

Status eliminateCommonSubexpressions(Graph& graph, PassContext& context) {
  constexpr std::size_t kLargestConstant = 4096;
  std::unordered_map<ValueId, ValueId> replacements;
  const auto now = [&](ValueId id) {
    const auto it = replacements.find(id);
    return it == replacements.end() ? id : it->second;
  };
  std::unordered_map<std::string, ValueId> constants;
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const Value& value = graph.value({static_cast<std::int32_t>(i)});
    if (!graph.alive(value.id) || value.role != ValueRole::kConstant || !value.data || value.type.dtype == DType::kString)
      continue;
    if (value.data->bytes() > kLargestConstant) continue;
    std::string key = fmt::format("{}{}:", dtypeName(value.data->dtype()), dimsText(value.data->dims()));
    key.append(static_cast<const char*>(value.data->data()), value.data->bytes());
    const auto [it, fresh] = constants.emplace(std::move(key), value.id);
    if (!fresh) replacements[value.id] = it->second;
  }
  std::vector<bool> isOutput(graph.valueCapacity(), false);
  for (const ValueId out : graph.outputs()) isOutput[static_cast<std::size_t>(out.index)] = true;
  std::unordered_map<std::string, NodeId> seen;
  std::vector<NodeId> dead;
  for (const NodeId id : graph.order()) {
    SS_TRY(context.cancel.check("cse"));
    const Node& node = graph.node(id);
    const OpDef* op = context.inference.ops().find(node);
    if (!op || op->random || op->sideEffect != SideEffect::kNone || !node.subgraphs.empty() ||
        node.phase == Phase::kOptimizer)
      continue;
    std::string key = fmt::format("{}\n{}\n{}\n", node.domain, node.op, node.outputs.size());
    for (const ValueId in : node.inputs) key += fmt::format("{},", now(in).index);
    for (const Predicate& predicate : node.predicates)
      key += fmt::format("?{}{}", now(predicate.condition).index, predicate.expected);
    for (const auto& [name, value] : node.attrs.entries()) {
      key += name + "=";
      appendAttribute(key, value);
    }
    const auto [it, fresh] = seen.emplace(std::move(key), id);
    if (fresh) continue;
    const Node& first = graph.node(it->second);
    bool mergeable = true;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] && (isOutput[static_cast<std::size_t>(node.outputs[o].index)] || !first.outputs[o]))
        mergeable = false;
    }
    if (!mergeable) {
      context.miss(id, fmt::format("equals {}, but its result is an output of the graph", first.label()));
      continue;
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o]) replacements[node.outputs[o]] = first.outputs[o];
    dead.push_back(id);
    context.match();
  }
  graph.replaceAllUses(replacements);
  graph.removeNodes(dead);
  return {};
}

}  // namespace stepscope
