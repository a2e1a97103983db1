#include "engine/passes/sparse_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/ops/class_loss.h"
#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

class RowGatherer {
 public:
  RowGatherer(Graph& graph, PassContext& context, const Readers& readers, ValueId rows, NodeId loss)
      : graph_(graph), context_(context), readers_(readers), rows_(rows), loss_(loss) {}

  // The rows of `value`, whose axes but the last are one axis of rows; taken as early as possible.
  ValueId rowsOf(ValueId value) {
    if (const auto it = gathered_.find(value); it != gathered_.end()) return it->second;
    ValueId result = early(value);
    if (!result) {
      const std::size_t rank = shapeOf(value).size();
      ValueId flat = value;
      if (rank != 2) flat = emit(loss_, "Flatten", {value}, {{"axis", static_cast<std::int64_t>(rank) - 1}});
      result = gather(flat);
    }
    return gathered_[value] = result;
  }

  ValueId gather(ValueId value) { return emit(loss_, "Gather", {value, rows_}, {{"axis", std::int64_t{0}}}); }

  std::size_t hops() const { return hops_; }

 private:
  const Shape& shapeOf(ValueId id) const { return *graph_.value(id).type.shape; }
  bool ranked(ValueId id) const { return id && graph_.value(id).type.shape.has_value(); }

  ValueId emit(NodeId of, std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {},
               std::string_view domain = "") {
    const ValueId value = emitBeside(graph_, of, op, std::move(inputs), std::move(attrs), domain);
    static_cast<void>(context_.inference.inferNode(graph_.value(value).producer));
    return value;
  }

  // The node that makes `value` on the rows of its operands; nothing where it has to see the others or others see it.
  ValueId early(ValueId value) {
    const NodeId made = graph_.value(value).producer;
    if (!made || !readers_.single(value)) return {};
    const Node node = graph_.node(made);
    if (node.predicates != graph_.node(loss_).predicates) return {};
    if (isOp(node, "Dropout")) return dropped(node);
    if (node.outputs.size() != 1) return {};
    if (isReshape(node)) {
      ++hops_;
      return rowsOf(node.input(0));
    }
    std::vector<ValueId> inputs = node.inputs;
    Attributes attrs = node.attrs;
    if (context_.inference.ops().isPointwise(node)) {
      for (const ValueId in : inputs)
        if (in && (!ranked(in) || (!isWhole(in, value) && !isRow(in)))) return {};
      for (ValueId& in : inputs)
        if (in && isWhole(in, value)) in = rowsOf(in);
    } else if (isOp(node, "MatMul")) {
      if (!ranked(inputs[0]) || !ranked(inputs[1]) || shapeOf(inputs[1]).size() != 2 || shapeOf(inputs[0]).size() < 2)
        return {};
      inputs[0] = rowsOf(inputs[0]);
    } else if (isOp(node, "Gemm")) {
      if (attrs.integer("transA", 0) != 0 || !ranked(inputs[0]) ||
          (node.input(2) && !(ranked(inputs[2]) && isRow(inputs[2]))))
        return {};
      inputs[0] = rowsOf(inputs[0]);
    } else if (isOp(node, "LayerNormalization") || isOp(node, "RMSNormalization")) {
      const auto rank = static_cast<std::int64_t>(shapeOf(value).size());
      const std::int64_t axis = attrs.integer("axis", -1);
      if (axis != -1 && axis != rank - 1) return {};
      attrs.set("axis", std::int64_t{-1});
      inputs[0] = rowsOf(inputs[0]);
    } else {
      return {};
    }
    ++hops_;
    return emit(made, node.op, std::move(inputs), std::move(attrs), node.domain);
  }

  // The mask stays that of all rows: those that are taken say which parts of it are drawn.
  ValueId dropped(const Node& node) {
    if (!ranked(node.input(0)) || shapeOf(node.input(0)).size() < 2) return {};
    if (node.output(1) && !readers_.of(node.output(1)).empty()) return {};
    ++hops_;
    const ValueId x = rowsOf(node.input(0)), all = emit(loss_, "Size", {graph_.node(loss_).input(1)});
    std::vector<ValueId> inputs{x, rows_, all, node.input(1), node.input(2)};
    while (!inputs.back()) inputs.pop_back();
    return emit(node.id, "DropoutPart", std::move(inputs), {{"axis", std::int64_t{0}}}, kInternalDomain);
  }

  // [.., last] to [rows, last]: rows keep their order.
  bool isReshape(const Node& node) const {
    if (!isOp(node, "Reshape") || !ranked(node.input(0)) || !ranked(node.output(0))) return false;
    const Shape &from = shapeOf(node.input(0)), &to = shapeOf(node.output(0));
    return from.size() >= 2 && to.size() >= 2 && from.back() == to.back();
  }
  bool isWhole(ValueId in, ValueId value) const {
    const Shape &own = shapeOf(in), &all = shapeOf(value);
    return own.size() == all.size() && std::equal(own.begin(), own.end() - 1, all.begin()) && own.size() >= 2;
  }
  // The same for every row.
  bool isRow(ValueId in) const { return shapeOf(in).size() <= 1; }

  Graph& graph_;
  PassContext& context_;
  const Readers& readers_;
  ValueId rows_;
  NodeId loss_;
  std::unordered_map<ValueId, ValueId> gathered_;
  std::size_t hops_ = 0;
};

// The input of the step that the labels are, row by row; nothing where they are computed.
ValueId labelInput(const Graph& graph, ValueId labels) {
  while (const NodeId made = graph.value(labels).producer) {
    const Node& node = graph.node(made);
    const bool view = isOp(node, "Reshape") || isOp(node, "Flatten") || isOp(node, "Cast") || isOp(node, "Squeeze") ||
                      isOp(node, "Unsqueeze") || isOp(node, "Identity");
    if (!view) return {};
    labels = node.input(0);
  }
  return graph.value(labels).role == ValueRole::kInput ? labels : ValueId{};
}

// Why the scores of ignored rows are needed, or are not worth the change; empty where they can go.
std::string refusal(const Graph& graph, const PassContext& context, const Node& loss, ValueId labels) {
  const auto &scores = graph.value(loss.input(0)).type.shape, &rows = graph.value(loss.input(1)).type.shape;
  if (!ignoredLabel(graph, loss)) return "the loss ignores no label";
  if (loss.attrs.text("reduction", "mean") == "none") return "the loss of every row is an output";
  if (loss.output(1)) return "the log-probabilities of all rows are an output";
  if (!scores || !rows || scores->size() != 2 || rows->size() != 1) return "scores and labels are no rows";
  if (!labels) return "its labels are computed, not an input";
  if (!isInteger(graph.value(labels).type.dtype)) return "its labels are no integers";
  const auto batch = std::ranges::find_if(
      context.batch, [&](const InputDensity& density) { return density.input == graph.value(labels).name; });
  if (batch == context.batch.end() || batch->elements == 0) return "no batch says how many labels count";
  return batch->dense;
}

}  // namespace

Status sparseLabels(Graph& graph, PassContext& context) {
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node loss = graph.node(id);
    if (!isCrossEntropy(loss)) continue;
    const ValueId labels = labelInput(graph, loss.input(1));
    if (const std::string reason = refusal(graph, context, loss, labels); !reason.empty()) {
      context.miss(id, reason);
      continue;
    }
    const Readers readers(graph);
    const std::string name = graph.value(labels).name + std::string(kKeptRowsSuffix);
    ValueId rows = graph.findValue(name);  // another loss may read the same labels
    if (!rows) {
      rows = graph.addValue(name, {ValueKind::kTensor, DType::kI64, Shape{Dim::symbol(name)}}, ValueRole::kInput);
      graph.mutableInputs().push_back(rows);
    }
    RowGatherer gatherer(graph, context, readers, rows, id);
    const ValueId scores = gatherer.rowsOf(loss.input(0)), kept = gatherer.gather(loss.input(1));
    graph.setInput(id, 0, scores);
    graph.setInput(id, 1, kept);
    SS_TRY(graph.sortTopologically());  // what was added stands at the end
    context.match();
    context.note(fmt::format("'{}': rows of '{}' are taken {} nodes before the loss", loss.name, graph.value(labels).name,
                             gatherer.hops()));
  }
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
