#include "engine/passes/eliminate_padding.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/ops/class_loss.h"
#include "engine/passes/beside.h"
#include "engine/passes/token_flow.h"

namespace stepscope {
namespace {

class Packer {
 public:
  Packer(Graph& graph, PassContext& context, const TokenFlow& flow, ValueId ids, ValueId kept)
      : graph_(graph), context_(context), flow_(flow), ids_(ids), kept_(kept) {}

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      if (flow_.isTokenwise(id))
        pack(id);
      else
        unpack(id);
      if (!status_) return status_;
    }
    return {};
  }
  std::size_t nodes() const { return nodes_; }
  std::size_t places() const { return places_; }

 private:
  const Shape& shapeOf(ValueId id) const { return *graph_.value(id).type.shape; }

  ValueId emit(NodeId of, std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {},
               std::string_view domain = "") {
    const ValueId value = emitBeside(graph_, of, op, std::move(inputs), std::move(attrs), domain);
    infer(graph_.value(value).producer);
    return value;
  }
  void infer(NodeId node) {
    if (Status inferred = context_.inference.inferNode(node); !inferred && status_) status_ = inferred;
  }
  ValueId number(std::int64_t value) { return graph_.addConstant("number", Tensor::ints({&value, 1})); }
  ValueId drop(NodeId of, ValueId value, std::int64_t axis) { return emit(of, "Squeeze", {value, number(axis)}); }

  // The extents [B, S] of the ids.
  ValueId extents(NodeId of) {
    if (!extents_) {
      extents_ = emit(of, "Shape", {ids_}, {{"start", std::int64_t{0}}, {"end", std::int64_t{2}}});
      length_ = emit(of, "Shape", {ids_}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}});
    }
    return extents_;
  }
  // The number of each kept token in its row, or of its row.
  ValueId placeOf(NodeId of, bool inRow) {
    ValueId& place = inRow ? inRow_ : row_;
    extents(of);
    if (!place) place = emit(of, inRow ? "Mod" : "Div", {kept_, length_});
    return place;
  }

  // The rows of kept tokens of a value that is [B, S, ...] or [B * S, ...], or that broadcasts to such of `rank` axes.
  ValueId rowsOf(NodeId of, ValueId value, TokenForm form, std::size_t rank) {
    if (const auto it = packed_.find(value); it != packed_.end()) return it->second;
    const std::size_t leading = form == TokenForm::kGrid ? 2 : 1, own = shapeOf(value).size();
    if (own + leading <= rank) return value;
    if (form == TokenForm::kFlat) {
      if (flow_.shaped(value) != TokenForm::kFlat) return value;  // one row for all
      return packed_[value] = emit(of, "Gather", {value, kept_}, {{"axis", std::int64_t{0}}});
    }
    if (own == rank && flow_.shaped(value) == TokenForm::kGrid) return packed_[value] = picked(of, value);
    // For all batch entries alike, or for all positions.
    const Shape shape = shapeOf(value);
    const ValueId rows = own == rank ? drop(of, value, shape[0] == Dim(1) ? 0 : 1) : value;
    const bool alike = shapeOf(rows)[0] == Dim(1);
    const bool byPlace = own < rank || shape[0] == Dim(1);
    return packed_[value] = alike ? rows : emit(of, "Gather", {rows, placeOf(of, byPlace)}, {{"axis", std::int64_t{0}}});
  }
  ValueId picked(NodeId of, ValueId value) { return emit(of, "FlattenAndUnpad", {value, kept_}, {}, "com.microsoft"); }

  void pack(NodeId id) {
    const Node node = graph_.node(id);
    ++nodes_;
    if (isCrossEntropy(node)) {
      const ValueId scores = rowsOf(id, node.input(0), TokenForm::kFlat, 2),
                    labels = rowsOf(id, node.input(1), TokenForm::kFlat, 1);
      graph_.setInput(id, 0, scores);
      graph_.setInput(id, 1, labels);
      return infer(id);
    }
    if (isOp(node, "Dropout")) return packDropout(id, node);
    TokenForm form = flow_.form(node.output(0));
    std::size_t rank = shapeOf(node.output(0)).size();
    const bool view = isOp(node, "Reshape") || isOp(node, "Flatten") || isOp(node, "Squeeze") || isOp(node, "Unsqueeze");
    const bool gather = isOp(node, "Gather");
    if (view) {
      form = flow_.form(node.input(0));
      rank = shapeOf(node.input(0)).size();
    } else if (!gather && !context_.inference.ops().isPointwise(node)) {
      rank = shapeOf(node.input(0)).size();
    }
    std::vector<ValueId> inputs = node.inputs;
    Attributes attrs = node.attrs;
    if (gather) {
      inputs[1] = rowsOf(id, inputs[1], form, shapeOf(inputs[1]).size());
    } else if (context_.inference.ops().isPointwise(node) || isOp(node, "Concat")) {
      for (ValueId& in : inputs)
        if (in) in = rowsOf(id, in, form, rank);
    } else {
      inputs[0] = rowsOf(id, inputs[0], form, rank);
    }
    if (view) return replaceView(id, node, inputs[0]);
    const auto fromEnd = [&](std::int64_t axis) { return axis < 0 ? axis : axis - static_cast<std::int64_t>(rank); };
    if (attrs.has("axis") && !gather) attrs.set("axis", fromEnd(attrs.integer("axis", 0)));
    if (isOp(node, "Slice") || isOp(node, "ReduceMean") || isOp(node, "ReduceSum")) {
      const std::size_t at = isOp(node, "Slice") ? 3 : 1;
      std::vector<std::int64_t> axes = *context_.inference.integers(node.input(at));
      std::ranges::transform(axes, axes.begin(), fromEnd);
      inputs[at] = graph_.addConstant("axes", Tensor::ints(axes));
    }
    std::vector<std::string> names;
    for (const ValueId out : node.outputs) names.push_back(out ? graph_.value(out).name + "_kept" : "");
    const NodeId made = addBeside(graph_, id, node.op, std::move(inputs), std::move(names), std::move(attrs), node.domain);
    infer(made);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i]) packed_[node.outputs[i]] = graph_.node(made).output(i);
  }

  // The mask stays that of all tokens: kept tokens say which parts of it are drawn.
  void packDropout(NodeId id, const Node& node) {
    const ValueId rows = rowsOf(id, node.input(0), flow_.form(node.input(0)), shapeOf(node.input(0)).size());
    std::vector<ValueId> inputs{rows, kept_, emit(id, "Size", {ids_}), node.input(1), node.input(2)};
    while (!inputs.back()) inputs.pop_back();
    packed_[node.output(0)] = emit(id, "DropoutPart", std::move(inputs), {{"axis", std::int64_t{0}}}, kInternalDomain);
  }

  void replaceView(NodeId id, const Node& node, ValueId rows) {
    const Shape result = shapeOf(node.output(0));
    const std::size_t behind = flow_.form(node.output(0)) == TokenForm::kGrid ? 2 : 1;
    std::vector<std::int64_t> shape{-1};
    for (std::size_t axis = behind; axis < result.size(); ++axis) shape.push_back(result[axis].value());
    const Shape tail(result.begin() + static_cast<std::ptrdiff_t>(behind), result.end());
    const Shape& own = shapeOf(rows);
    packed_[node.output(0)] = std::equal(own.begin() + 1, own.end(), tail.begin(), tail.end())
                                  ? rows
                                  : emit(id, "Reshape", {rows, graph_.addConstant("shape", Tensor::ints(shape))});
  }

  // A node that is left as it is reads all tokens.
  void unpack(NodeId id) {
    const Node node = graph_.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const ValueId in = node.inputs[i]; in && flow_.dependsOnPadding(in)) graph_.setInput(id, i, whole(id, in));
  }
  ValueId whole(NodeId of, ValueId value) {
    // What a node that was left makes is there already.
    if (!flow_.isTokenwise(graph_.value(value).producer)) return value;
    if (const auto it = whole_.find(value); it != whole_.end()) return it->second;
    ++places_;
    ValueId padded = emit(of, "PadAndUnflatten", {packed_.at(value), kept_, extents(of)}, {}, "com.microsoft");
    if (flow_.form(value) == TokenForm::kFlat) {
      const Shape& own = shapeOf(value);
      std::vector<std::int64_t> shape{-1};
      for (std::size_t axis = 1; axis < own.size(); ++axis) shape.push_back(own[axis].known() ? own[axis].value() : 0);
      padded = own.size() == 2 ? emit(of, "Flatten", {padded}, {{"axis", std::int64_t{2}}})
                               : emit(of, "Reshape", {padded, graph_.addConstant("shape", Tensor::ints(shape))});
    }
    return whole_[value] = padded;
  }

  Graph& graph_;
  PassContext& context_;
  const TokenFlow& flow_;
  ValueId ids_, kept_, extents_, length_, inRow_, row_;
  std::unordered_map<ValueId, ValueId> packed_, whole_;
  std::size_t nodes_ = 0, places_ = 0;
  Status status_;
};

std::vector<std::string> labelsOf(const PassContext& context, std::int64_t elements) {
  std::vector<std::string> names;
  for (const InputDensity& density : context.batch)
    if (density.kind == "labels" && density.elements == elements) names.push_back(density.input);
  return names;
}

// Why the input's padding stays, before its graph is looked at; empty where it may go.
std::string refusal(const Graph& graph, const InputDensity& density, const TokenInput& input) {
  const auto& shape = graph.value(input.ids).type.shape;
  if (!shape || shape->size() != 2) return fmt::format("'{}' is not [batch, positions]", density.input);
  if ((*shape)[0] == (*shape)[1]) return fmt::format("'{}' has as many rows as positions", density.input);
  if (density.elements == 0) return "the batch is empty";
  return density.dense;
}

NodeId firstReader(const Graph& graph, ValueId value) {
  for (const NodeId id : graph.order())
    if (std::ranges::find(graph.node(id).inputs, value) != graph.node(id).inputs.end()) return id;
  return graph.order().empty() ? NodeId{} : graph.order().front();
}

}  // namespace

Status eliminatePadding(Graph& graph, PassContext& context) {
  const std::vector<InputDensity> batch = context.batch;
  bool tokens = false;
  for (const InputDensity& density : batch) {
    if (density.kind != "tokens") continue;
    const ValueId ids = graph.findValue(density.input);
    if (!ids || graph.findValue(density.input + std::string(kKeptTokensSuffix))) continue;
    tokens = true;
    const TokenInput input{ids, density.mask.empty() ? ValueId{} : graph.findValue(density.mask), density.ignored,
                           labelsOf(context, density.elements)};
    if (std::string reason = refusal(graph, density, input); !reason.empty()) {
      context.miss(firstReader(graph, ids), std::move(reason));
      continue;
    }
    const TokenFlow flow(graph, context.inference, input);
    if (flow.refusal()) {
      context.miss(flow.refusal()->node, flow.refusal()->reason);
      continue;
    }
    if (flow.products() == 0) {
      context.miss(firstReader(graph, ids), fmt::format("no matrix product works on each token of '{}'", density.input));
      continue;
    }
    const std::string name = density.input + std::string(kKeptTokensSuffix);
    const ValueId kept =
        graph.addValue(name, {ValueKind::kTensor, DType::kI64, Shape{Dim::symbol(name)}}, ValueRole::kInput);
    graph.mutableInputs().push_back(kept);
    Packer packer(graph, context, flow, ids, kept);
    SS_TRY(packer.run());
    SS_TRY(graph.sortTopologically());  // what was added stands at the end
    graph.removeDeadNodes();
    context.match();
    context.note(
        fmt::format("'{}': {} nodes work on the tokens that count, {} matrix products among them; padded tokens come "
                    "back at {} places",
                    density.input, packer.nodes(), flow.products(), packer.places()));
  }
  if (!tokens && !graph.order().empty()) context.miss(graph.order().front(), "no batch says which tokens are padding");
  return {};
}

}  // namespace stepscope
