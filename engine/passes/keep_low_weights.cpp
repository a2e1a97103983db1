#include "engine/passes/keep_low_weights.h"

#include <fmt/format.h>

#include <unordered_map>

#include "engine/ir/low_copy.h"
#include "engine/ops/op_def.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

// Where an update writes its copy: behind the new parameter and its states; -1 for other nodes.
int copyOutputOf(const Node& node) {
  if (node.domain != kInternalDomain) return -1;
  if (node.op == "AdamUpdate" || node.op == "LambUpdate") return 3;
  return node.op == "SgdUpdate" ? 2 : -1;
}

class CopyKeeper {
 public:
  CopyKeeper(Graph& graph, PassContext& context) : graph_(graph), context_(context), readers_(graph) {
    for (const StateUpdate& update : graph.stateUpdates) nextOf_[update.state] = update.next;
  }

  Status run() {
    for (const NodeId id : graph_.order())
      if (isCastOfWeight(graph_.node(id))) SS_TRY(keep(id));
    if (gone_.empty()) return {};
    graph_.replaceAllUses(copies_);
    graph_.removeNodes(gone_);
    context_.note(
        fmt::format("{} weights kept in a low type too, {} of them written by their updates", gone_.size(), written_));
    return {};
  }

 private:
  bool isCastOfWeight(const Node& node) const {
    if (!isOp(node, "Cast") || !node.input(0) || !node.output(0)) return false;
    const Value &from = graph_.value(node.input(0)), &to = graph_.value(node.output(0));
    return from.role == ValueRole::kInitializer && from.type.dtype == DType::kF32 && isLow(to.type.dtype);
  }

  Status keep(NodeId id) {
    const Node& cast = graph_.node(id);
    const ValueId parameter = cast.input(0);
    const DType low = graph_.value(cast.output(0)).type.dtype;
    const std::string name = lowCopyName(graph_.value(parameter).name, low);
    NodeId update;
    if (const auto next = nextOf_.find(parameter); next != nextOf_.end()) {
      update = graph_.value(next->second).producer;
      const Node* node = update ? &graph_.node(update) : nullptr;
      if (!node || copyOutputOf(*node) < 0 || node->input(0) != parameter || node->output(0) != next->second)
        return miss(id, fmt::format("parameter '{}' is written by something else than an update in float32",
                                    graph_.value(parameter).name));
    }
    if (!cast.predicates.empty()) return miss(id, "it stands under a condition of If");
    if (readers_.isKept(cast.output(0))) return miss(id, "its result is kept");
    if (const auto& shape = graph_.value(parameter).type.shape; !shape || !knownDims(*shape))
      return miss(id, "the extents of the parameter are not known");
    if (graph_.findValue(name)) return miss(id, fmt::format("the model has a value '{}'", name));
    const ValueId copy =
        graph_.addValue(name, {ValueKind::kTensor, low, graph_.value(parameter).type.shape}, ValueRole::kState);
    if (update) {
      const auto at = static_cast<std::size_t>(copyOutputOf(graph_.node(update)));
      const ValueId next = graph_.addOutput(update, name + "_next", at);
      Node& node = graph_.mutableNode(update);
      node.attrs.set("copies", std::int64_t{1});
      node.attrs.set("copy_type", static_cast<std::int64_t>(low));
      SS_TRY(context_.inference.inferNode(update));
      graph_.stateUpdates.push_back({copy, next});
      ++written_;
    }
    copies_[cast.output(0)] = copy;
    gone_.push_back(id);
    context_.match();
    return {};
  }

  Status miss(NodeId id, std::string condition) {
    context_.miss(id, std::move(condition));
    return {};
  }

  Graph& graph_;
  PassContext& context_;
  const Readers readers_;  // of the graph as it came
  std::unordered_map<ValueId, ValueId> nextOf_, copies_;
  std::vector<NodeId> gone_;
  std::size_t written_ = 0;
};

}  // namespace

Status keepLowWeights(Graph& graph, PassContext& context) { return CopyKeeper(graph, context).run(); }

}  // namespace stepscope
