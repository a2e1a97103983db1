#include "engine/onnx/inliner.h"

#include <algorithm>
#include <unordered_map>

#include "engine/data/limits.h"
#include "engine/ir/pass_scope.h"
#include "engine/onnx/attribute_reader.h"
#include "engine/onnx/function_calls.h"
#include "engine/onnx/problem.h"

namespace stepscope {
namespace {

// Longer names would multiply with the depth of calls.
constexpr std::size_t kJoinedNameBytes = 1'024;

std::string joined(const std::string& call, const std::string& name) {
  return call.size() + name.size() < kJoinedNameBytes ? call + "/" + name : name;
}

// What the names of a function body mean at one call.
struct Binding {
  const Node& call;
  const Function& function;
  std::unordered_map<std::string, std::string> names;  // value of the body → value of the calling graph; "" = omitted
};

void resolveReferences(const Binding& binding, Node& node) {
  for (const auto& [name, parameter] : node.attributeReferences) {
    if (const AttrValue* value = binding.call.attrs.find(parameter))
      node.attrs.set(name, *value);
    else if (const auto graph = binding.call.subgraphs.find(parameter); graph != binding.call.subgraphs.end())
      node.subgraphs.edit()[name] = graph->second;
    else if (const AttrValue* fallback = binding.function.attributeDefaults.find(parameter))
      node.attrs.set(name, *fallback);
  }
  node.attributeReferences.clear();
  normaliseConstant(node);
}

// A copy of a body's subgraph in which captured values have the names of the calling graph and references are resolved.
Result<std::shared_ptr<const Graph>> rebindSubgraph(const Graph& source, const Binding& binding, const Node& owner) {
  auto copy = std::make_shared<Graph>();
  copy->name = source.name;
  copy->opsets = source.opsets;
  std::vector<ValueId> ids(source.valueCapacity());
  Binding inner{binding.call, binding.function, binding.names};
  for (std::size_t i = 0; i < source.valueCapacity(); ++i) {
    const Value& value = source.value(ValueId{static_cast<std::int32_t>(i)});
    if (!source.alive(value.id) || value.role == ValueRole::kNodeOutput) {
      inner.names.erase(value.name);
      continue;
    }
    std::string name = value.name;
    const bool isInput = std::find(source.inputs().begin(), source.inputs().end(), value.id) != source.inputs().end();
    const auto outside = binding.names.find(name);
    if (isInput && outside != binding.names.end()) {
      if (outside->second.empty())
        return invalid("function '" + shownName(binding.function.name) + "': its " + owner.label() + " uses input '" +
                       shownName(name) + "' that call '" + shownName(binding.call.name) + "' omits; expected the input");
      name = outside->second;
    } else {
      inner.names.erase(name);
    }
    ids[i] = copy->addValue(std::move(name), value.type, value.role);
    copy->mutableValue(ids[i]).data = value.data;
  }
  for (const ValueId input : source.inputs()) copy->mutableInputs().push_back(ids[static_cast<std::size_t>(input.index)]);
  const auto mapped = [&](ValueId id) { return id ? ids[static_cast<std::size_t>(id.index)] : ValueId{}; };
  for (const NodeId id : source.order()) {
    const Node& node = source.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    std::vector<std::string> outputs;
    for (const ValueId output : node.outputs) outputs.push_back(output ? source.value(output).name.str() : "");
    const NodeId made = copy->addNode(node.name, node.domain, node.op, std::move(inputs), outputs, node.attrs);
    Node& fresh = copy->mutableNode(made);
    fresh.sinceVersion = node.sinceVersion;
    fresh.provenance = node.provenance;
    fresh.provenance.imported = made;
    fresh.attributeReferences = node.attributeReferences;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i]) ids[static_cast<std::size_t>(node.outputs[i].index)] = copy->node(made).outputs[i];
    for (const auto& [name, subgraph] : node.subgraphs) {
      SS_ASSIGN(auto rebound, rebindSubgraph(*subgraph, inner, node));
      copy->mutableNode(made).subgraphs.edit()[name] = std::move(rebound);
    }
    resolveReferences(binding, copy->mutableNode(made));
  }
  for (const ValueId output : source.outputs()) copy->mutableOutputs().push_back(mapped(output));
  return std::shared_ptr<const Graph>(std::move(copy));
}

bool hasCalls(const Graph& graph, const FunctionPlan& plan) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (plan.indices.contains(keyOf(node))) return true;
    for (const auto& entry : node.subgraphs)
      if (hasCalls(*entry.second, plan)) return true;
  }
  return false;
}

class Inliner {
 public:
  Inliner(const std::vector<Function>& functions, const FunctionPlan& plan) : functions_(functions), plan_(plan) {}

  Status run(Graph& graph, int depth) {
    const PassScope scope(graph, "inline");
    std::vector<NodeId> order;
    std::vector<NodeId> calls;
    const std::vector<NodeId> before = graph.order();
    for (const NodeId id : before) SS_TRY(visit(graph, id, depth, order, calls));
    graph.removeNodes(calls);
    graph.setOrder(std::move(order));
    return {};
  }

  const InlineReport& report() const { return report_; }

 private:
  Status visit(Graph& graph, NodeId id, int depth, std::vector<NodeId>& order, std::vector<NodeId>& calls) {
    const auto it = plan_.indices.find(keyOf(graph.node(id)));
    if (it == plan_.indices.end()) {
      const std::map<std::string, std::shared_ptr<const Graph>> subgraphs = graph.node(id).subgraphs;
      for (const auto& [name, body] : subgraphs) {
        if (!hasCalls(*body, plan_)) continue;
        auto copy = std::make_shared<Graph>(*body);
        SS_TRY(run(*copy, depth));
        graph.mutableNode(id).subgraphs.edit()[name] = std::move(copy);
      }
      order.push_back(id);
      return {};
    }
    report_.depth = std::max(report_.depth, depth + 1);
    ++report_.calls;
    SS_ASSIGN(const auto added, expand(graph, id, functions_[it->second]));
    calls.push_back(id);
    for (const NodeId child : added) SS_TRY(visit(graph, child, depth + 1, order, calls));
    return {};
  }

  // Adds the body's nodes; the call's outputs are handed over to the nodes that now produce them.
  Result<std::vector<NodeId>> expand(Graph& graph, NodeId callId, const Function& function) {
    const Graph& body = function.body;
    const Node call = graph.node(callId);  // a copy: adding nodes moves them
    if (call.inputs.size() > body.inputs().size() || call.outputs.size() > body.outputs().size())
      return invalid(call.label() + ": " + std::to_string(call.inputs.size()) + " inputs and " +
                     std::to_string(call.outputs.size()) + " outputs; function '" + shownName(function.name) + "' has " +
                     std::to_string(body.inputs().size()) + " and " + std::to_string(body.outputs().size()));
    Binding binding{call, function, {}};
    std::vector<ValueId> ids(body.valueCapacity());
    for (std::size_t i = 0; i < body.inputs().size(); ++i)
      ids[static_cast<std::size_t>(body.inputs()[i].index)] = call.input(i);
    std::unordered_map<std::int32_t, ValueId> handedOver;  // value of the body → the call's output value
    std::vector<std::pair<ValueId, ValueId>> copies;  // call's output ← value: not produced by the body, or twice an output
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      if (!call.outputs[i]) continue;
      const Value& value = body.value(body.outputs()[i]);
      if (value.role != ValueRole::kNodeOutput || !handedOver.emplace(value.id.index, call.outputs[i]).second)
        copies.emplace_back(call.outputs[i], value.id);
    }
    for (const ValueId input : body.inputs()) nameIn(graph, binding, body, input, ids);

    std::vector<NodeId> added;
    for (const NodeId id : body.order()) {
      SS_ASSIGN(const NodeId made, addBodyNode(graph, callId, body.node(id), body, binding, ids, handedOver));
      added.push_back(made);
    }
    for (const auto& [output, value] : copies) {
      const ValueId from = ids[static_cast<std::size_t>(value.index)];
      if (!from)
        return invalid(call.label() + ": output '" + shownName(graph.value(output).name) +
                       "' is an input that the call omits; expected the input");
      const NodeId identity = graph.addNode(joined(call.name, "Identity"), "", "Identity", {from}, {""});
      const auto opset = body.opsets.find("");
      graph.mutableNode(identity).sinceVersion =
          opset == body.opsets.end() ? static_cast<int>(limits::kAssumedOpset) : opset->second;
      fillProvenance(graph, identity, callId, {});
      graph.moveOutput(output, identity, 0);
      added.push_back(identity);
    }
    for (const auto& [domain, version] : body.opsets) graph.opsets.emplace(domain, version);
    report_.nodes += added.size();
    return added;
  }

  Result<NodeId> addBodyNode(Graph& graph, NodeId callId, const Node& node, const Graph& body, Binding& binding,
                             std::vector<ValueId>& ids, const std::unordered_map<std::int32_t, ValueId>& handedOver) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(input ? ids[static_cast<std::size_t>(input.index)] : ValueId{});
    std::vector<std::string> outputs;
    for (const ValueId output : node.outputs)
      outputs.push_back(output && !handedOver.contains(output.index) ? joined(binding.call.name, body.value(output).name)
                                                                     : "");
    const NodeId made =
        graph.addNode(joined(binding.call.name, node.name), node.domain, node.op, std::move(inputs), outputs, node.attrs);
    Node& fresh = graph.mutableNode(made);
    fresh.sinceVersion = node.sinceVersion;
    fresh.attributeReferences = node.attributeReferences;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (!output) continue;
      if (const auto it = handedOver.find(output.index); it != handedOver.end()) graph.moveOutput(it->second, made, i);
      ids[static_cast<std::size_t>(output.index)] = graph.node(made).outputs[i];
    }
    for (const auto& [name, subgraph] : node.subgraphs) {
      SS_ASSIGN(auto rebound, rebindSubgraph(*subgraph, binding, node));
      graph.mutableNode(made).subgraphs.edit()[name] = std::move(rebound);
    }
    resolveReferences(binding, graph.mutableNode(made));
    fillProvenance(graph, made, callId, node.provenance);
    for (const ValueId output : node.outputs)
      if (output) nameIn(graph, binding, body, output, ids);
    return made;
  }

  static void nameIn(const Graph& graph, Binding& binding, const Graph& body, ValueId id, const std::vector<ValueId>& ids) {
    const ValueId outside = ids[static_cast<std::size_t>(id.index)];
    binding.names[body.value(id).name] = outside ? graph.value(outside).name.view() : "";
  }

  static void fillProvenance(Graph& graph, NodeId made, NodeId callId, const Provenance& inBody) {
    const Provenance& call = graph.node(callId).provenance;
    Provenance provenance = inBody.modulePath.empty() || inBody.modulePathInferred ? call : inBody;
    if (!inBody.sourceFile.empty()) {
      provenance.sourceFile = inBody.sourceFile;
      provenance.sourceLine = inBody.sourceLine;
      provenance.sourceCode = inBody.sourceCode;
    } else {
      provenance.sourceFile = call.sourceFile;
      provenance.sourceLine = call.sourceLine;
      provenance.sourceCode = call.sourceCode;
    }
    provenance.pass = InternedText("inline");
    provenance.sources = {callId};
    provenance.imported = made;
    provenance.forward = {};
    graph.mutableNode(made).provenance = std::move(provenance);
  }

  const std::vector<Function>& functions_;
  const FunctionPlan& plan_;
  InlineReport report_;
};

}  // namespace

Result<InlineReport> inlineFunctions(Graph& graph, const std::vector<Function>& functions) {
  SS_ASSIGN(const FunctionPlan plan, planFunctions(graph, functions));
  if (!hasCalls(graph, plan)) return InlineReport{};
  Inliner inliner(functions, plan);
  SS_TRY(inliner.run(graph, 0));
  return inliner.report();
}

}  // namespace stepscope
