#include "engine/train/onnxruntime_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// Ops whose inputs are the same ones in another order. -1: an absent input.
struct Renamed {
  std::string_view op, theirs;
  std::vector<int> inputs;
  std::vector<std::string_view> attributes;
};

const std::vector<Renamed>& renamedOps() {
  static const std::vector<Renamed> table{
      {"GatherGrad", "GatherGrad", {2, 1, 0}, {"axis"}},
      {"GatherElementsGrad", "GatherElementsGrad", {0, 2, 1}, {"axis"}},
      {"GatherNDGrad", "GatherNDGrad", {2, 1, 0}, {"batch_dims"}},
      {"SliceGrad", "SliceGrad", {0, 1, 2, 3, 4, 5}, {}},
      {"LayerNormalizationGrad", "LayerNormalizationGrad", {0, 1, 2, 3, 4}, {"axis"}},
      {"SimplifiedLayerNormalizationGrad", "SimplifiedLayerNormalizationGrad", {0, 1, 2, 3}, {"axis"}},
      {"SoftmaxGrad", "SoftmaxGrad_13", {0, 1}, {"axis"}},
      {"LogSoftmaxGrad", "LogSoftmaxGrad_13", {0, 1}, {"axis"}},
      {"SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLossGrad", {0, 1, 2, 3}, {"reduction", "ignore_index"}},
      {"ReluGrad", "ReluGrad", {0, 1}, {}},
  };
  return table;
}

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}

  Status rewrite() {
    graph_.opsets[kMicrosoft] = 1;
    const std::vector<NodeId> nodes = graph_.order();
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      const bool trains = node.attrs.integer("training_mode", 0) != 0;
      if (node.domain.empty() && node.op == "BatchNormalization" && trains) batchNormInternal(id);
      if (node.domain == kInternalDomain && !rewriteOwn(id)) unknown_.insert(node.op);
    }
    if (!unknown_.empty())
      return unsupported(fmt::format("artifacts for ONNX Runtime: no op there for {}; expected a model without them",
                                     fmt::join(unknown_, ", ")));
    graph_.removeNodes(merged_);
    return graph_.sortTopologically();
  }

 private:
  bool rewriteOwn(NodeId id) {
    const std::string op = graph_.node(id).op;
    if (const auto it = std::ranges::find(renamedOps(), op, &Renamed::op); it != renamedOps().end()) return rename(id, *it);
    if (op == "BatchedMatMul") return fusedMatMul(id);
    if (op == "ReduceToShape") return reduceToShape(id);
    if (op == "MaxPoolGrad" || op == "AveragePoolGrad") return poolGrad(id);
    if (op == "ConvInputGrad" || op == "ConvWeightGrad") return convGrad(id);
    if (op == "BatchNormalizationGrad") return batchNormGrad(id);
    return false;
  }

  void become(NodeId id, std::string domain, std::string op, std::vector<ValueId> inputs, Attributes attrs) {
    Node& node = graph_.mutableNode(id);
    node.domain = std::move(domain);
    node.op = std::move(op);
    node.sinceVersion = 1;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
  }

  Attributes chosen(const Node& node, const std::vector<std::string_view>& names) const {
    Attributes attrs;
    for (const std::string_view name : names)
      if (const AttrValue* value = node.attrs.find(name)) attrs.set(std::string(name), *value);
    return attrs;
  }

  bool rename(NodeId id, const Renamed& to) {
    const Node& node = graph_.node(id);
    // What a pass adds (an addend, an ignore_index that is computed) has no place there.
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] && std::ranges::find(to.inputs, static_cast<int>(i)) == to.inputs.end()) return false;
    std::vector<ValueId> inputs;
    for (const int i : to.inputs) inputs.push_back(node.input(static_cast<std::size_t>(i)));
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    Attributes attrs = chosen(node, to.attributes);
    become(id, kMicrosoft, std::string(to.theirs), std::move(inputs), std::move(attrs));
    return true;
  }

  bool fusedMatMul(NodeId id) {
    const Node& node = graph_.node(id);
    Attributes attrs = chosen(node, {"alpha", "transA", "transB"});
    become(id, kMicrosoft, "FusedMatMul", node.inputs, std::move(attrs));
    return true;
  }

  // The axes are found when it runs, since extents may be symbolic.
  bool reduceToShape(NodeId id) {
    const Node node = graph_.node(id);
    const ValueId from = add(node, "Shape", "", {node.input(0)}, {});
    const NodeId axesOf = graph_.addNode(node.name + "/axes", kMicrosoft, "BroadcastGradientArgs", {node.input(1), from},
                                         {node.name + ".axes", ""});
    settle(axesOf, node, 1);
    const ValueId sum = add(node, "ReduceSumTraining", kMicrosoft, {node.input(0), graph_.node(axesOf).output(0)},
                            {{"keepdims", std::int64_t{1}}, {"noop_with_empty_axes", std::int64_t{1}}});
    become(id, "", "Reshape", {sum, node.input(1)}, {});
    graph_.mutableNode(id).sinceVersion = kInternalOpset;
    return true;
  }

  bool poolGrad(NodeId id) {
    const Node& node = graph_.node(id);
    const bool average = node.op == "AveragePoolGrad";
    std::vector<ValueId> inputs{node.input(0)};
    if (!average) inputs.push_back(node.input(1));
    Attributes attrs = node.attrs;
    if (average) return false;  // it has no kernel on the CPU
    const Node& forward = graph_.node(node.provenance.forward);
    attrs = forward.attrs;
    become(id, "", "MaxPoolGrad", std::move(inputs), std::move(attrs));
    graph_.mutableNode(id).sinceVersion = 9;
    return true;
  }

  // One node makes both gradients; that of the weight always, because the kernel writes it unasked.
  bool convGrad(NodeId id) {
    const Node node = graph_.node(id);
    const Node forward = graph_.node(node.provenance.forward);
    if (forward.op != "Conv") return false;
    auto it = convolutions_.find(forward.id);
    if (it == convolutions_.end()) {
      const NodeId made = graph_.addNode(forward.name + "/ConvGrad", kMicrosoft, "ConvGrad",
                                         {node.input(0), forward.input(0), forward.input(1)},
                                         {"", forward.name + ".weight_gradient"}, forward.attrs);
      settle(made, node, 1);
      graph_.mutableValue(graph_.node(made).output(1)).type = graph_.value(forward.input(1)).type;
      it = convolutions_.emplace(forward.id, made).first;
    }
    const ValueId gradient = node.output(0);
    const std::size_t place = node.op == "ConvInputGrad" ? 0 : 1;
    if (place == 1) graph_.removeValue(graph_.node(it->second).output(1));
    graph_.moveOutput(gradient, it->second, place);
    merged_.push_back(id);
    return true;
  }

  void batchNormInternal(NodeId id) {
    const Node& node = graph_.node(id);
    Attributes attrs = chosen(node, {"epsilon", "momentum"});
    attrs.set("training_mode", std::int64_t{1});
    become(id, kMicrosoft, "BatchNormInternal", node.inputs, std::move(attrs));
    for (std::size_t i = 1; i < 5; ++i)
      if (!graph_.node(id).output(i)) graph_.addOutput(id, fmt::format("{}.statistic{}", graph_.node(id).name, i), i);
  }

  bool batchNormGrad(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.attrs.integer("training_mode", 1) == 0) return false;
    const Node& forward = graph_.node(node.provenance.forward);
    Attributes attrs = chosen(forward, {"epsilon"});
    become(id, kMicrosoft, "BatchNormalizationGrad", node.inputs, std::move(attrs));
    for (std::size_t i = 0; i < 3; ++i)
      if (!graph_.node(id).output(i)) graph_.addOutput(id, fmt::format("{}.gradient{}", graph_.node(id).name, i), i);
    return true;
  }

  ValueId add(const Node& beside, const std::string& op, const std::string& domain, std::vector<ValueId> inputs,
              Attributes attrs) {
    const NodeId made = graph_.addNode(fmt::format("{}/{}", beside.name, op), domain, op, std::move(inputs),
                                       {fmt::format("{}.{}", beside.name, op)}, std::move(attrs));
    settle(made, beside, domain.empty() ? kInternalOpset : 1);
    return graph_.node(made).output(0);
  }

  void settle(NodeId made, const Node& beside, int version) {
    Node& node = graph_.mutableNode(made);
    node.sinceVersion = version;
    node.phase = beside.phase;
    node.provenance = beside.provenance;
  }

  Graph& graph_;
  std::unordered_map<NodeId, NodeId> convolutions_;  // ConvGrad by forward node
  std::vector<NodeId> merged_;
  std::set<std::string> unknown_;
};

}  // namespace

Status useOnnxruntimeOps(Graph& graph) { return Rewriter(graph).rewrite(); }

}  // namespace stepscope
