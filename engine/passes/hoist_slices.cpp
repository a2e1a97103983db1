#include "engine/passes/hoist_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"
#include "engine/passes/slice_rules.h"

namespace stepscope {
namespace {

// What takes a part of a value: a node without its data and axis.
struct Take {
  std::string op, domain;
  std::vector<ValueId> inputs;  // without the data; a Slice's axes are in `axis`
  std::size_t axis = 0;
  bool paired = false, drops = false;  // drops: Gather by a number, whose result has no such axis
};

class Hoister {
 public:
  Hoister(Graph& graph, PassContext& context)
      : graph_(graph), context_(context), inference_(context.inference), reads_(graph.valueCapacity(), 0), kept_(reads_) {
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      for (const ValueId in : node.inputs) count(in, 1);
      for (const Predicate& predicate : node.predicates) keep(predicate.condition);
    }
    for (const ValueId out : graph.outputs()) keep(out);
    for (const StateUpdate& update : graph.stateUpdates) keep(update.next);
  }

  Status run() {
    std::deque<NodeId> waiting;
    for (const NodeId id : graph_.order())
      if (readTake(id) && isFloating(graph_.value(graph_.node(id).input(0)).type.dtype)) waiting.push_back(id);
    // What stands still may move once an equal part was taken of the same value.
    for (bool moved = true; moved;) {
      moved = false;
      why_.clear();
      for (std::size_t n = waiting.size(); n > 0; --n) {
        const NodeId id = waiting.front();
        waiting.pop_front();
        std::vector<NodeId> made;
        SS_ASSIGN(const bool passed, pass(id, made));
        moved |= passed;
        waiting.insert(waiting.end(), made.begin(), made.end());
        if (!passed) waiting.push_back(id);
      }
    }
    for (const auto& [node, why] : why_) context_.miss(node, why);
    if (context_.result.matches == 0) return {};
    graph_.removeNodes(gone_);
    SS_TRY(graph_.sortTopologically());  // what was added stands at the end
    graph_.removeDeadNodes();
    return {};
  }

 private:
  using Key = std::pair<std::vector<std::int32_t>, std::string>;

  const std::optional<Shape>& shapeOf(ValueId id) const { return graph_.value(id).type.shape; }
  void grow(ValueId id) {
    const auto at = static_cast<std::size_t>(id.index);
    if (at >= reads_.size()) reads_.resize(at + 1, 0), kept_.resize(at + 1, 0);
  }
  void count(ValueId id, int by) {
    if (!id) return;
    grow(id);
    reads_[static_cast<std::size_t>(id.index)] += by;
  }
  void keep(ValueId id) {
    grow(id);
    kept_[static_cast<std::size_t>(id.index)] = 1;
  }
  bool onlyRead(ValueId id) {
    grow(id);
    return reads_[static_cast<std::size_t>(id.index)] == 1 && kept_[static_cast<std::size_t>(id.index)] == 0;
  }
  bool isRead(ValueId id) {
    if (!id) return false;
    grow(id);
    return reads_[static_cast<std::size_t>(id.index)] != 0 || kept_[static_cast<std::size_t>(id.index)] != 0;
  }

  std::optional<Take> readTake(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto& shape = node.input(0) ? shapeOf(node.input(0)) : std::nullopt;
    if (!shape || shape->empty()) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(shape->size());
    const auto placed = [&](std::int64_t axis) { return static_cast<std::size_t>(axis < 0 ? axis + rank : axis); };
    Take take{.op = node.op, .domain = node.domain, .inputs = {}};
    if (isOp(node, "Slice")) {
      const auto axes = node.input(3) ? inference_.integers(node.input(3)) : std::vector<std::int64_t>{0};
      const auto& begin = shapeOf(node.input(1));
      if (!axes || axes->size() != 1 || !begin || *begin != Shape{Dim(1)}) return std::nullopt;
      take.axis = placed(axes->front());
      take.inputs = {node.input(1), node.input(2), node.input(4)};
      return take;
    }
    const bool shrunken = node.op == "ShrunkenGather" && node.domain == "com.microsoft";
    if (isOp(node, "Gather") || shrunken) {
      const auto& indices = shapeOf(node.input(1));
      if (!indices || indices->size() > 1) return std::nullopt;
      take.axis = placed(node.attrs.integer("axis", 0));
      take.inputs = {node.input(1)};
      take.drops = indices->empty();
      return take;
    }
    if (isOp(node, "GatherND") && node.attrs.integer("batch_dims", 0) == 1) {
      const auto& indices = shapeOf(node.input(1));
      if (!indices || indices->size() != 3 || (*indices)[2] != Dim(1) || rank < 2) return std::nullopt;
      take.axis = 1;
      take.paired = true;
      take.inputs = {node.input(1)};
      return take;
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> known(const Dim& dim) const {
    return (context_.extents ? dim.substitute(*context_.extents) : dim).asKnown();
  }

  // Why that many operands are not taken in part; empty where they may be.
  std::string cost(const Take& take, const Dim& whole, const Dim& part, std::size_t operands) const {
    if (take.drops) return {};
    const auto all = known(whole), kept = known(part);
    const bool neverMore =
        take.op == "Slice" || take.op == "ShrunkenGather" || (kept && (*kept == 1 || (all && *kept < *all)));
    if (!neverMore)
      return fmt::format("{} of {} places are picked, which may be as many or more", part.text(), whole.text());
    const bool half = kept && (all ? 2 * *kept <= *all : *kept == 1);
    if (operands > 1 && !half)
      return fmt::format("{} of {} places of {} operands: taking them in part costs more than it saves", part.text(),
                         whole.text(), operands);
    return {};
  }

  // Whether something that computes can be passed at `value`, behind views.
  bool computes(ValueId value, std::size_t axis, bool paired) {
    const NodeId made = graph_.value(value).producer;
    if (!made || !onlyRead(value)) return false;
    const Node& node = graph_.node(made);
    const PartOf part = partOf(graph_, inference_.ops(), node, axis, paired);
    if (!part.refusal.empty()) return false;
    return !part.view || (part.axes[0] && computes(node.input(0), *part.axes[0], paired));
  }

  bool stay(NodeId take, std::string why) {
    why_[take] = std::move(why);
    return false;
  }

  // Passes the node in front of one that takes; `made` gets the takes that then stand before its operands.
  Result<bool> pass(NodeId id, std::vector<NodeId>& made) {
    const Take take = *readTake(id);
    const ValueId y = graph_.node(id).input(0);
    const NodeId source = graph_.value(y).producer;
    if (!source) return false;
    const Node node = graph_.node(source);
    if (node.phase != graph_.node(id).phase) return false;
    // Rows of a value whose leading axes a Reshape made one: what is passed stands before the Reshape.
    if (take.axis == 0 && !take.paired)
      if (const auto merged = mergedAxes(graph_, node)) return passMerged(id, take, node, *merged, made);
    const PartOf part = partOf(graph_, inference_.ops(), node, take.axis, take.paired);
    const Dim& whole = (*shapeOf(y))[take.axis];
    if (std::string why = refusal(id, take, node, part, y, whole); !why.empty()) return stay(id, std::move(why));
    if (part.view && !computes(node.input(0), *part.axes[0], take.paired)) return false;
    std::vector<ValueId> inputs = node.inputs;
    Attributes attrs = node.attrs;
    if (isOp(node, "Reshape")) {
      const auto target = targetOf(node, take, *part.axes[0], keptOf(id, take));
      if (!target) return stay(id, "the extents of the reshaped part follow from the batch");
      inputs[1] = graph_.addConstant("shape", Tensor::ints(*target));
      attrs = {};
    }
    std::optional<Draws> draws;
    if (part.draws && !(draws = drawsOf(id, take, {whole})))
      return stay(id, "the extent of the value that Dropout draws for is no extent of an input");
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (part.axes[i]) {
        SS_ASSIGN(inputs[i], emitTake(id, take, inputs[i], *part.axes[i], made));
      }
    SS_TRY(become(id, node, std::move(inputs), std::move(attrs), draws, take));
    return true;
  }

  // The Reshape reads what `inner` makes; both are passed at once: operands are flattened, and rows taken of that.
  Result<bool> passMerged(NodeId id, const Take& take, const Node& reshape, std::size_t merged, std::vector<NodeId>& made) {
    const ValueId x = reshape.input(0), y = reshape.output(0);
    const NodeId source = graph_.value(x).producer;
    if (!source) return false;
    const Node inner = graph_.node(source);
    PartOf part = rowsOf(graph_, inference_.ops(), inner, merged);
    if (!onlyRead(y)) part.refusal = fmt::format("'{}' is read whole too", graph_.value(y).name);
    if (std::string why = refusal(id, take, inner, part, x, (*shapeOf(y))[0]); !why.empty()) return stay(id, std::move(why));
    const Shape& from = *shapeOf(x);
    std::optional<Draws> draws;
    if (part.draws && !(draws = drawsOf(id, take, Shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(merged)))))
      return stay(id, "the extent of the value that Dropout draws for is no extent of an input");
    std::vector<ValueId> inputs = inner.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!part.axes[i]) continue;
      const ValueId flat = flattened(id, inputs[i], merged);
      SS_ASSIGN(inputs[i], emitTake(id, take, flat, 0, made));
    }
    Attributes attrs = inner.attrs;
    if (attrs.has("axis") && attrs.integer("axis", -1) >= 0)
      attrs.set("axis", attrs.integer("axis", -1) - static_cast<std::int64_t>(from.size()));
    count(x, -1);
    gone_.push_back(reshape.id);
    SS_TRY(become(id, inner, std::move(inputs), std::move(attrs), draws, take));
    return true;
  }

  Dim keptOf(NodeId id, const Take& take) const {
    return take.drops ? Dim(1) : (*shapeOf(graph_.node(id).output(0)))[take.axis];
  }

  // Why `node`, which makes `value`, is not passed; empty where it is. `whole`: of how many places some are taken.
  std::string refusal(NodeId id, const Take& take, const Node& node, const PartOf& part, ValueId value, const Dim& whole) {
    if (!part.refusal.empty()) return part.refusal;
    if (!onlyRead(value)) return fmt::format("'{}' is read whole too", graph_.value(value).name);
    for (std::size_t o = 1; o < node.outputs.size(); ++o)
      if (isRead(node.outputs[o])) return fmt::format("'{}' is read too", graph_.value(node.outputs[o]).name);
    if (node.predicates != graph_.node(id).predicates) return "it belongs to another branch of If";
    if (part.taken() == 0) return "no operand has the axis that is taken";
    return cost(take, whole, keptOf(id, take), part.product ? 1 : part.taken());
  }

  // The value with its first axes as one; the same for equal values.
  ValueId flattened(NodeId of, ValueId value, std::size_t merged) {
    ValueId& flat = flat_[{value.index, merged}];
    if (flat) return flat;
    if (shapeOf(value)->size() == merged + 1)
      return flat = emit(of, "Flatten", {value}, {{"axis", static_cast<std::int64_t>(merged)}});
    const ValueId behind = emit(of, "Shape", {value}, {{"start", static_cast<std::int64_t>(merged)}});
    const ValueId shape = emit(of, "Concat", {number(-1), behind}, {{"axis", std::int64_t{0}}});
    return flat = emit(of, "Reshape", {value, shape});
  }

  // The target of a Reshape once `kept` places of an axis of its input are taken.
  std::optional<std::vector<std::int64_t>> targetOf(const Node& reshape, const Take& take, std::size_t axis,
                                                    const Dim& kept) {
    Shape from = *shapeOf(reshape.input(0)), to = *shapeOf(reshape.output(0));
    from[axis] = kept;
    to[take.axis] = kept;
    return reshapeTarget(from, to);
  }

  ValueId emit(NodeId of, std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {},
               std::string_view domain = "") {
    for (const ValueId in : inputs) count(in, 1);
    const ValueId value = emitBeside(graph_, of, op, std::move(inputs), std::move(attrs), domain);
    if (Status inferred = inference_.inferNode(graph_.value(value).producer); !inferred && status_) status_ = inferred;
    return value;
  }
  ValueId number(std::int64_t value) { return graph_.addConstant("number", Tensor::ints({&value, 1})); }

  // What takes the same of another value along another axis. A number becomes a slice of one place or a vector of one.
  Result<ValueId> emitTake(NodeId of, const Take& take, ValueId value, std::size_t axis, std::vector<NodeId>& made) {
    std::vector<std::int32_t> parts{value.index, static_cast<std::int32_t>(axis), take.drops};
    for (const ValueId in : take.inputs) parts.push_back(in.index);
    ValueId& taken = taken_[Key{parts, take.op}];
    if (taken) return taken;
    const Attributes along{{"axis", static_cast<std::int64_t>(axis)}};
    if (take.op == "Slice") {
      std::vector<ValueId> inputs{value, take.inputs[0], take.inputs[1], number(static_cast<std::int64_t>(axis))};
      if (take.inputs[2]) inputs.push_back(take.inputs[2]);
      taken = emit(of, "Slice", std::move(inputs));
    } else if (take.paired) {
      taken = emit(of, "GatherND", {value, take.inputs[0]}, {{"batch_dims", std::int64_t{1}}});
    } else if (take.drops) {
      // Of an extent that is not known a Gather of one place has one, a Slice at most one.
      if (const auto place = inference_.integers(take.inputs[0]); place && (*shapeOf(value))[axis].known()) {
        const std::int64_t at = place->front();
        const std::int64_t end = at == -1 ? std::numeric_limits<std::int64_t>::max() : at + 1;
        taken = emit(of, "Slice", {value, number(at), number(end), number(static_cast<std::int64_t>(axis))});
      } else {
        taken = emit(of, "Gather", {value, vectorOf(of, take.inputs[0])}, along);
      }
    } else {
      taken = emit(of, take.op, {value, take.inputs[0]}, along, take.domain);
    }
    SS_TRY(status_);
    made.push_back(graph_.value(taken).producer);
    return taken;
  }
  ValueId vectorOf(NodeId of, ValueId index) { return emit(of, "Reshape", {index, number(1)}); }

  // Where a Dropout draws of which a part is taken: the places, int64, and the extent of the whole axis, one number.
  struct Draws {
    ValueId places, extent;
  };
  // `factors`: of the extent. Nothing where one of them is no number and no extent of an input.
  std::optional<Draws> drawsOf(NodeId of, const Take& take, const Shape& factors) {
    std::int64_t known = 1;
    std::vector<std::pair<ValueId, std::int64_t>> axes;
    for (const Dim& factor : factors) {
      if (factor.known()) {
        known *= factor.value();
        continue;
      }
      const auto at = inputWith(factor);
      if (!at) return std::nullopt;
      axes.push_back(*at);
    }
    Draws draws;
    for (const auto& [input, axis] : axes) {
      const ValueId one = emit(of, "Shape", {input}, {{"start", axis}, {"end", axis + 1}});
      draws.extent = draws.extent ? emit(of, "Mul", {draws.extent, one}) : one;
    }
    if (!draws.extent)
      draws.extent = number(known);
    else if (known != 1)
      draws.extent = emit(of, "Mul", {draws.extent, number(known)});
    if (take.op == "Slice") {
      const ValueId end = emit(of, "Squeeze", {draws.extent, number(0)});
      std::vector<ValueId> inputs{emit(of, "Range", {scalar(0), end, scalar(1)}), take.inputs[0], take.inputs[1], number(0)};
      if (take.inputs[2]) inputs.push_back(take.inputs[2]);
      draws.places = emit(of, "Slice", std::move(inputs));
      return draws;
    }
    draws.places = take.inputs[0];
    if (take.drops) draws.places = vectorOf(of, draws.places);
    if (take.paired) draws.places = emit(of, "Squeeze", {draws.places, number(2)});
    if (graph_.value(draws.places).type.dtype != DType::kI64)
      draws.places = emit(of, "Cast", {draws.places}, {{"to", static_cast<std::int64_t>(DType::kI64)}});
    return draws;
  }
  ValueId scalar(std::int64_t value) {
    return graph_.addConstant("number", Tensor::scalar(DType::kI64, static_cast<double>(value)));
  }
  // An input of the step and the axis of it that has this extent.
  std::optional<std::pair<ValueId, std::int64_t>> inputWith(const Dim& extent) const {
    for (const ValueId input : graph_.inputs()) {
      const auto& shape = shapeOf(input);
      for (std::size_t axis = 0; shape && axis < shape->size(); ++axis)
        if ((*shape)[axis] == extent) return std::pair(input, static_cast<std::int64_t>(axis));
    }
    return std::nullopt;
  }

  // The taking node becomes the one it passed, which works on parts; a Gather by a number drops its axis behind it.
  Status become(NodeId id, const Node& node, std::vector<ValueId> inputs, Attributes attrs,
                const std::optional<Draws>& draws, const Take& take) {
    for (const ValueId in : graph_.node(id).inputs) count(in, -1);
    for (const ValueId in : node.inputs) count(in, -1);
    std::string op = node.op, domain = node.domain;
    const auto axis = static_cast<std::int64_t>(take.axis);
    if (draws) {
      inputs = {inputs[0], draws->places, draws->extent, node.input(1), node.input(2)};
      while (!inputs.back()) inputs.pop_back();
      attrs = {{"axis", axis}};
      op = "DropoutPart";
      domain = kInternalDomain;
    }
    NodeId part = id;
    if (take.drops) {
      part = addBeside(graph_, node.id, op, {}, {node.name + "/part"}, {}, domain);
      graph_.mutableNode(id).inputs = {graph_.node(part).output(0), number(axis)};
      for (const ValueId in : graph_.node(id).inputs) count(in, 1);
    }
    for (const ValueId in : inputs) count(in, 1);
    Node& target = graph_.mutableNode(part);
    target.op = std::move(op);
    target.domain = std::move(domain);
    target.inputs = std::move(inputs);
    target.attrs = std::move(attrs);
    target.sinceVersion = node.sinceVersion;
    target.provenance = node.provenance;
    target.provenance.sources.push_back(node.id);
    target.provenance.pass = graph_.pass();
    graph_.logChange(part);
    if (take.drops) {
      SS_TRY(inference_.inferNode(part));
      Node& squeeze = graph_.mutableNode(id);
      squeeze.op = "Squeeze";
      squeeze.domain.clear();
      squeeze.attrs = {};
      squeeze.provenance.pass = graph_.pass();
      graph_.logChange(id);
    }
    gone_.push_back(node.id);
    SS_TRY(status_);
    context_.match();
    return {};
  }

  Graph& graph_;
  PassContext& context_;
  Inference& inference_;
  std::vector<int> reads_, kept_;  // by value: how often nodes read it; whether it outlives them
  std::map<Key, ValueId> taken_;
  std::map<std::pair<std::int32_t, std::size_t>, ValueId> flat_;
  std::map<NodeId, std::string> why_;  // of what stands still: the condition that failed
  std::vector<NodeId> gone_;
  Status status_;
};

}  // namespace

Status hoistSlices(Graph& graph, PassContext& context) { return Hoister(graph, context).run(); }

}  // namespace stepscope
