#include "engine/passes/assign_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/passes/beside.h"
#include "engine/passes/float16_range.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

class PrecisionAssigner {
 public:
  PrecisionAssigner(Graph& graph, PassContext& context, DType low)
      : graph_(graph), context_(context), low_(low), readers_(graph) {
    if (!graph.outputs().empty()) loss_ = graph.outputs().front();
    forcedNodes_.resize(context.forced.size());
  }

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      if (const OpDef* op = context_.inference.ops().find(graph_.node(id)); op && !op->sequences) settle(id, *op);
      SS_TRY(context_.inference.inferNode(id));
      order_.push_back(id);
    }
    for (std::size_t i = 0; i < context_.forced.size(); ++i)
      if (forcedNodes_[i] == 0)
        context_.warn(
            fmt::format("option 'precision.force': '{}' matches no op, node or module", context_.forced[i].setting));
      else
        context_.note(fmt::format("{} nodes by '{}'", forcedNodes_[i], context_.forced[i].setting));
    if (casts_.empty()) return {};
    graph_.setOrder(std::move(order_));
    SS_TRY(graph_.sortTopologically());
    context_.note(fmt::format("{} operands read through {} casts", context_.result.matches, casts_.size()));
    return {};
  }

 private:
  // The operands whose type the node's class decides about.
  std::vector<std::size_t> floatingInputs(const Node& node, const OpDef& op) const {
    std::vector<std::size_t> found;
    if (isOp(node, "Cast") || isOp(node, "CastLike")) return found;
    const std::size_t count = isOp(node, "BatchNormalization") ? 1 : node.inputs.size();
    for (std::size_t i = 0; i < std::min(count, node.inputs.size()); ++i) {
      if (!node.inputs[i] || maskHas(op.hostInputs.value_or(kNoInputs), i)) continue;
      const DType dtype = graph_.value(node.inputs[i]).type.dtype;
      if (dtype == DType::kF64) return {};
      if (isFloating(dtype)) found.push_back(i);
    }
    return found;
  }

  // A number rather than a tensor.
  bool isNumber(ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.type.shape && value.type.shape->empty()) return true;
    return value.role == ValueRole::kConstant && value.data && value.data->elements() == 1;
  }

  DType widest(const Node& node, const std::vector<std::size_t>& inputs) const {
    DType type = DType::kUndefined;
    for (const bool numbers : {false, true}) {
      for (const std::size_t i : inputs)
        if (isNumber(node.inputs[i]) == numbers) {
          const DType own = graph_.value(node.inputs[i]).type.dtype;
          type = type == DType::kUndefined || type == own ? own : DType::kF32;
        }
      if (type != DType::kUndefined) break;
    }
    return type;
  }

  DType forcedType(const Node& node) {
    for (std::size_t i = 0; i < context_.forced.size(); ++i) {
      const ForcedPrecision& force = context_.forced[i];
      if (!force.matches(node.op) && !force.matches(node.name) && !force.matches(node.provenance.modulePath)) continue;
      ++forcedNodes_[i];
      return force.dtype;
    }
    return DType::kUndefined;
  }

  // A layer whose bias the exporter added by a node of its own.
  bool addsBias(const Node& node) const {
    if (!isOp(node, "Add") || node.inputs.size() != 2) return false;
    for (const std::size_t k : {0u, 1u}) {
      const Value &product = graph_.value(node.inputs[k]), &bias = graph_.value(node.inputs[1 - k]);
      if (product.type.dtype != low_ || !product.producer || bias.role != ValueRole::kInitializer) continue;
      const OpDef* maker = context_.inference.ops().find(graph_.node(product.producer));
      if (maker && maker->precision == Precision::kLow && bias.type.shape && bias.type.shape->size() == 1) return true;
    }
    return false;
  }

  // Whether whatever reads the value, through ops that follow their inputs, computes in the low type.
  bool onlyReadLow(ValueId id, int depth = 0) const {
    constexpr int kDeepest = 8;
    if (depth > kDeepest || readers_.isKept(id) || readers_.of(id).empty()) return false;
    return std::ranges::all_of(readers_.of(id), [&](const Use& use) {
      if (use.input == SIZE_MAX) return false;
      const Node& reader = graph_.node(use.node);
      const OpDef* op = context_.inference.ops().find(reader);
      if (!op || isOp(reader, "Cast") || isOp(reader, "CastLike")) return false;
      if (op->precision == Precision::kLow) return true;
      return op->precision == Precision::kFollows && onlyReadLow(reader.output(0), depth + 1);
    });
  }

  // A Softmax between two products: its kernel computes in float32 and rounds its result once, which the next product would
  // do to it anyway. So the backward phase keeps half the bytes.
  bool softmaxStays(const Node& node) const {
    return isOp(node, "Softmax") && graph_.value(node.input(0)).type.dtype == low_ && onlyReadLow(node.output(0));
  }

  void settle(NodeId id, const OpDef& op) {
    const Node& node = graph_.node(id);
    const std::vector<std::size_t> inputs = floatingInputs(node, op);
    if (inputs.empty()) return;
    const bool makesLoss = std::find(node.outputs.begin(), node.outputs.end(), loss_) != node.outputs.end();
    const DType forced = forcedType(node);
    const DType wanted = forced != DType::kUndefined                         ? forced
                         : makesLoss                                         ? DType::kF32
                         : softmaxStays(node)                                ? low_
                         : op.precision == Precision::kF32                   ? DType::kF32
                         : op.precision == Precision::kLow || addsBias(node) ? low_
                                                                             : widest(node, inputs);
    for (const std::size_t i : inputs) {
      const ValueId in = graph_.node(id).inputs[i];
      if (graph_.value(in).type.dtype == wanted) continue;
      tellOfOverflow(graph_, context_, graph_.node(id), in, wanted,
                     fmt::format("precision.force={}:fp32", graph_.node(id).name));
      graph_.setInput(id, i, castOf(in, wanted, id));
      context_.match();
    }
  }

  // Behind the producer and under its conditions; of what no node makes, before the first reader.
  ValueId castOf(ValueId value, DType type, NodeId reader) {
    // A cast from the low type to float32 and back is the value itself.
    if (const Node* cast = producerOf(graph_, value, "Cast"))
      if (const DType from = graph_.value(cast->input(0)).type.dtype;
          from == type && graph_.value(value).type.dtype == DType::kF32)
        return cast->input(0);
    const auto [it, isNew] = casts_.try_emplace({value.index, type});
    if (!isNew) return it->second;
    const NodeId producer = graph_.value(value).producer;
    const ValueId cast =
        emitBeside(graph_, producer ? producer : reader, "Cast", {value}, {{"to", static_cast<std::int64_t>(type)}});
    const NodeId made = graph_.value(cast).producer;
    if (!producer) graph_.mutableNode(made).predicates.clear();
    static_cast<void>(context_.inference.inferNode(made));
    order_.push_back(made);
    return it->second = cast;
  }

  Graph& graph_;
  PassContext& context_;
  const DType low_;
  const Readers readers_;  // of the graph as it came
  ValueId loss_;
  std::map<std::pair<std::int32_t, DType>, ValueId> casts_;
  std::vector<NodeId> order_;
  std::vector<std::size_t> forcedNodes_;  // by setting: how many nodes obey it
};

}  // namespace

Status assignPrecision(Graph& graph, PassContext& context) {
  const std::string_view wish = context.option("precision", "fp32");
  if (wish == "fp32") return {};
  return PrecisionAssigner(graph, context, wish == "bf16" ? DType::kBF16 : DType::kF16).run();
}

}  // namespace stepscope
