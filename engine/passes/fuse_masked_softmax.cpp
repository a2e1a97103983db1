#include "engine/passes/fuse_masked_softmax.h"

#include "engine/passes/pattern.h"
#include "engine/passes/scalar.h"

namespace stepscope {
namespace {

struct Masked {
  ValueId x, mask;
  std::optional<float> fill;  // of a bool mask
  bool invert = false;        // x where the mask is false
};

std::optional<Masked> readMasked(const Graph& graph, const Inference& inference, const Node& node) {
  const auto& shape = graph.value(node.output(0)).type.shape;
  const auto whole = [&](ValueId id) { return id && shape && graph.value(id).type.shape == shape; };
  if (isOp(node, "Add") && node.inputs.size() == 2) {
    if (whole(node.input(0))) return Masked{node.input(0), node.input(1), {}, false};
    if (whole(node.input(1))) return Masked{node.input(1), node.input(0), {}, false};
  }
  if (isOp(node, "Where") && node.inputs.size() == 3) {
    if (const auto fill = constantScalar(inference, node.input(2)); fill && whole(node.input(1)))
      return Masked{node.input(1), node.input(0), static_cast<float>(*fill), false};
    if (const auto fill = constantScalar(inference, node.input(1)); fill && whole(node.input(2)))
      return Masked{node.input(2), node.input(0), static_cast<float>(*fill), true};
  }
  return std::nullopt;
}

}  // namespace

Status fuseMaskedSoftmax(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  const Readers readers(graph);
  std::vector<NodeId> gone;
  const std::vector<NodeId> order = graph.order();
  for (const NodeId id : order) {
    const Node& softmax = graph.node(id);
    if (!isOp(softmax, "Softmax")) continue;
    const ValueId scores = softmax.input(0);
    const NodeId producer = graph.value(scores).producer;
    const auto masked = producer ? readMasked(graph, inference, graph.node(producer)) : std::nullopt;
    if (!masked) continue;
    const auto rank = static_cast<std::int64_t>(graph.value(scores).type.shape->size());
    const std::int64_t axis = softmax.attrs.integer("axis", -1);
    std::string condition;
    if (axis != -1 && axis != rank - 1)
      condition = "softmax runs along another axis than the last";
    else if (graph.value(scores).type.dtype != DType::kF32)
      condition = "the scores are no float32";
    else if (!readers.single(scores))
      condition = "the masked scores are read elsewhere too";
    else if (graph.node(producer).predicates != softmax.predicates || graph.node(producer).phase != softmax.phase)
      condition = "the mask belongs to another phase or branch of If";
    if (!condition.empty()) {
      context.miss(id, condition);
      continue;
    }
    Node& target = graph.mutableNode(id);
    target.domain = kInternalDomain;
    target.op = "MaskedSoftmax";
    target.inputs = {masked->x, masked->mask};
    target.attrs = {};
    if (masked->fill) target.attrs.set("fill", *masked->fill);
    if (masked->invert) target.attrs.set("invert", std::int64_t{1});
    target.provenance.sources.push_back(producer);
    target.provenance.pass = graph.pass();
    graph.logChange(id);
    gone.push_back(producer);
    context.match();
  }
  graph.removeNodes(gone);
  return {};
}

}  // namespace stepscope
