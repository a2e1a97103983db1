#include "engine/passes/propagate_casts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"
#include "engine/passes/product_node.h"

namespace stepscope {
namespace {

class CastMover {
 public:
  CastMover(Graph& graph, PassContext& context) : graph_(graph), context_(context), readers_(graph) {}

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& node = graph_.node(id);
      if (isOp(node, "Cast"))
        SS_TRY(castOfTranspose(id));
      else if (isOp(node, "Transpose"))
        SS_TRY(transposeOfCast(id));
      order_.push_back(id);
    }
    if (context_.result.matches > 0) {
      graph_.setOrder(std::move(order_));
      graph_.removeDeadNodes();
    }
    tellWhatStays();
    return {};
  }

 private:
  bool productReads(ValueId id) const {
    const auto uses = readers_.of(id);
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return use.input != SIZE_MAX && readProduct(graph_, graph_.node(use.node)).has_value();
    });
  }

  // What the node reads, when `op` makes it under the same conditions; else null.
  const Node* behind(NodeId id, std::string_view op) const {
    const Node& node = graph_.node(id);
    const Node* producer = producerOf(graph_, node.input(0), op);
    return producer && producer->predicates == node.predicates ? producer : nullptr;
  }

  Status castOfTranspose(NodeId id) {
    const Node* transpose = behind(id, "Transpose");
    if (!transpose || !productReads(graph_.node(id).output(0))) return {};
    const Attributes cast = graph_.node(id).attrs, perm = transpose->attrs;
    const ValueId x = transpose->input(0);
    ValueId& moved = moved_[{x.index, cast.integer("to", 0)}];
    if (!moved || graph_.node(graph_.value(moved).producer).predicates != graph_.node(id).predicates) {
      moved = emitBeside(graph_, id, "Cast", {x}, cast);
      SS_TRY(place(moved));
    }
    return become(id, "Transpose", perm, moved);
  }

  Status transposeOfCast(NodeId id) {
    const Node* cast = behind(id, "Cast");
    if (!cast || !readers_.single(cast->output(0)) || productReads(graph_.node(id).output(0))) return {};
    const ValueId y = cast->input(0);
    const NodeId maker = graph_.value(y).producer;
    if (!maker || !readProduct(graph_, graph_.node(maker))) return {};
    if (!readers_.single(y)) {
      context_.miss(id, "the product '" + graph_.value(y).name + "' has other readers");
      return {};
    }
    const Attributes to = cast->attrs, perm = graph_.node(id).attrs;
    const ValueId turned = emitBeside(graph_, id, "Transpose", {y}, perm);
    SS_TRY(place(turned));
    return become(id, "Cast", to, turned);
  }

  // Every cast between floating types that is left costs a pass over memory: between which ops it stands is a near miss.
  void tellWhatStays() {
    const Readers readers(graph_);
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (!isOp(node, "Cast") || !node.output(0)) continue;
      const Value &x = graph_.value(node.input(0)), &y = graph_.value(node.output(0));
      if (!isFloating(x.type.dtype) || !isFloating(y.type.dtype) || x.type.dtype == y.type.dtype) continue;
      const std::string made = x.producer                          ? graph_.node(x.producer).label() + " makes "
                               : x.role == ValueRole::kInitializer ? fmt::format("parameter '{}' is kept in ", x.name)
                                                                   : fmt::format("'{}' is ", x.name);
      const auto uses = readers.of(y.id);
      const auto reader = std::ranges::find_if(uses, [](const Use& use) { return use.input != SIZE_MAX; });
      const std::string read = reader == uses.end() ? "what reads it needs " : graph_.node(reader->node).label() + " reads ";
      context_.miss(id, fmt::format("{}{}, {}{}", made, dtypeName(x.type.dtype), read, dtypeName(y.type.dtype)));
    }
  }

  Status place(ValueId made) {
    const NodeId node = graph_.value(made).producer;
    order_.push_back(node);
    return context_.inference.inferNode(node);
  }

  Status become(NodeId id, const char* op, Attributes attrs, ValueId input) {
    graph_.setInput(id, 0, input);
    Node& node = graph_.mutableNode(id);
    node.op = op;
    node.attrs = std::move(attrs);
    node.provenance.pass = graph_.pass();
    graph_.logChange(id);
    context_.match();
    return context_.inference.inferNode(id);
  }

  Graph& graph_;
  PassContext& context_;
  Readers readers_;
  std::map<std::pair<std::int32_t, std::int64_t>, ValueId> moved_;  // casts by what they read and their type
  std::vector<NodeId> order_;
};

}  // namespace

Status propagateCasts(Graph& graph, PassContext& context) { return CastMover(graph, context).run(); }

}  // namespace stepscope
