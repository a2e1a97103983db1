#include "engine/passes/fuse_batch_norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

class Fuser {
 public:
  Fuser(Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        uses_(graph.uses()),
        kept_(graph.valueCapacity(), false),
        place_(graph.nodeCapacity(), -1) {
    for (const ValueId out : graph.outputs()) kept_[at(out)] = true;
    for (const StateUpdate& update : graph.stateUpdates) kept_[at(update.next)] = true;
    for (std::size_t i = 0; i < graph.order().size(); ++i) place_[at(graph.order()[i])] = static_cast<int>(i);
    order_ = graph.order();
  }

  Status run() {
    const std::vector<NodeId> order = graph_.order();
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      if (node.domain.empty() && node.op == "Relu") forward(id);
      if (node.domain == kInternalDomain && node.op == "ReluGrad") backward(id);
    }
    if (context_.result.matches > 0) {
      graph_.setOrder(std::move(order_));
      graph_.removeNodes(gone_);
    }
    return {};
  }

 private:
  const Node* producerOf(ValueId id, std::string_view domain, std::string_view op) const {
    const NodeId producer = id ? graph_.value(id).producer : NodeId{};
    if (!producer) return nullptr;
    const Node& node = graph_.node(producer);
    return graph_.alive(producer) && node.domain == domain && node.op == op ? &node : nullptr;
  }
  // Who besides node `reader` needs the value; empty when nobody does.
  std::string readElsewhere(ValueId id, NodeId reader) const {
    if (kept_[at(id)]) return "an output of the graph";
    for (const Use& use : uses_[at(id)])
      if (use.node != reader) return graph_.node(use.node).label();
    return uses_[at(id)].size() == 1 ? "" : graph_.node(reader).label() + ", twice";
  }
  void miss(NodeId node, std::string condition) { context_.miss(node, std::move(condition)); }

  // `survivor` takes the place of `replaced` in the order.
  void take(NodeId survivor, NodeId replaced, std::vector<NodeId> sources) {
    Node& node = graph_.mutableNode(survivor);
    node.provenance.sources.insert(node.provenance.sources.end(), sources.begin(), sources.end());
    node.provenance.pass = graph_.pass();
    node.domain = kInternalDomain;
    const auto from = static_cast<std::size_t>(place_[at(survivor)]), to = static_cast<std::size_t>(place_[at(replaced)]);
    std::swap(order_[from], order_[to]);
    std::swap(place_[at(survivor)], place_[at(replaced)]);
    gone_.insert(gone_.end(), sources.begin(), sources.end());
    graph_.logChange(survivor);
    context_.match();
  }

  void forward(NodeId relu) {
    const ValueId before = graph_.node(relu).input(0);
    const Node* norm = producerOf(before, "", "BatchNormalization");
    const Node* add = producerOf(before, "", "Add");
    if (!norm && !add) return;
    ValueId z;
    if (add) {
      // Of two normalisations the later one, so that the other result is there.
      const Node *a = producerOf(add->input(0), "", "BatchNormalization"),
                 *b = producerOf(add->input(1), "", "BatchNormalization");
      if (!a && !b) return;
      norm = a && b ? (place_[at(a->id)] > place_[at(b->id)] ? a : b) : a ? a : b;
      z = norm == a ? add->input(1) : add->input(0);
      const ValueType &sum = graph_.value(before).type, &left = graph_.value(norm->output(0)).type,
                      &right = graph_.value(z).type;
      if (!sum.shape || sum.shape != left.shape || sum.shape != right.shape)
        return miss(norm->id,
                    fmt::format("the addend '{}' is {}; expected {}", graph_.value(z).name, right.text(), left.text()));
      if (const std::string reader = readElsewhere(before, relu); !reader.empty())
        return miss(norm->id, fmt::format("the sum '{}' is read before Relu too: {}", graph_.value(before).name, reader));
    }
    const NodeId next = add ? add->id : relu;
    if (const std::string reader = readElsewhere(norm->output(0), next); !reader.empty())
      return miss(norm->id, fmt::format("its result is read without {} too: {}", add ? "the addend" : "Relu", reader));
    if (norm->predicates != graph_.node(relu).predicates || (add && add->predicates != norm->predicates))
      return miss(norm->id, "Relu belongs to another branch of If");
    if (norm->phase != graph_.node(relu).phase) return miss(norm->id, "Relu belongs to another phase");
    Node& fused = graph_.mutableNode(norm->id);
    fused.op = "FusedBatchNormalization";
    if (z) fused.inputs.push_back(z);
    fused.attrs.set("relu", std::int64_t{1});
    graph_.swapOutputs(fused.outputs[0], graph_.node(relu).outputs[0]);
    take(fused.id, relu, add ? std::vector{relu, add->id} : std::vector{relu});
  }

  void backward(NodeId gate) {
    const Node& relu = graph_.node(gate);
    const ValueId g = relu.output(0);
    const Node* norm = nullptr;
    bool others = kept_[at(g)];
    for (const Use& use : uses_[at(g)]) {
      const Node& reader = graph_.node(use.node);
      const bool takes = graph_.alive(use.node) && reader.domain == kInternalDomain &&
                         reader.op == "BatchNormalizationGrad" && use.input == 0;
      if (takes && (!norm || place_[at(use.node)] < place_[at(norm->id)])) {
        others |= norm != nullptr;
        norm = &reader;
      } else {
        others = true;
      }
    }
    if (!norm) return;
    if (norm->predicates != relu.predicates) return miss(norm->id, "ReluGrad belongs to another branch of If");
    for (std::size_t i = 1; i < norm->inputs.size(); ++i) {
      const NodeId producer = norm->inputs[i] ? graph_.value(norm->inputs[i]).producer : NodeId{};
      if (producer && place_[at(producer)] >= place_[at(gate)])
        return miss(norm->id, fmt::format("'{}' is made after ReluGrad", graph_.value(norm->inputs[i]).name));
    }
    Node& fused = graph_.mutableNode(norm->id);
    fused.op = "FusedBatchNormalizationGrad";
    fused.inputs[0] = relu.input(0);
    fused.inputs.push_back(relu.input(1));
    if (others) graph_.moveOutput(g, fused.id, 3);
    take(fused.id, gate, {gate});
  }

  Graph& graph_;
  PassContext& context_;
  UseTable uses_;  // as they were when the pass began
  std::vector<bool> kept_;
  std::vector<int> place_;  // in the order, by node
  std::vector<NodeId> order_, gone_;
};

}  // namespace

Status fuseBatchNorm(Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace stepscope
