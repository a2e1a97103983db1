#include "engine/lab/one_node.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/autodiff/gradient.h"
#include "engine/exec/interpreter.h"
#include "engine/ops/op_registry.h"

namespace stepscope {
namespace {

constexpr RandomKey kKey{.seed = 7};

Tensor weightsFor(const Dims& dims) {
  Tensor weights(DType::kF64, dims);
  double k = 0;
  for (double& w : weights.as<double>()) w = std::sin(1.0 + 1.7 * k++);
  return weights;
}

}  // namespace

Result<OneNode> OneNode::of(const Graph& graph, const Node& node, const Operators& operators,
                            const std::function<Result<Tensor>(ValueId)>& contents,
                            const std::function<bool(ValueId)>& wanted) {
  if (!node.subgraphs.empty())
    return fail(ErrorCode::kUnsupported,
                fmt::format("{}: a node with a body; expected one that stands alone", node.label()));
  const OpDef* op = operators.ops.find(node.domain, node.op);
  if (op == nullptr || op->gradient == nullptr)
    return fail(ErrorCode::kUnsupported,
                fmt::format("{}: no gradient rule{}{}", node.label(), op && !op->noGradientReason.empty() ? ": " : "",
                            op ? op->noGradientReason : std::string_view()));
  OneNode made;
  made.operators_ = &operators;
  made.node_ = node;
  // A cast to a narrower float rounds, which finite differences would see and a slope does not have.
  if (node.op == "Cast" && isFloating(static_cast<DType>(node.attrs.integer("to", 0))))
    made.node_.attrs.set("to", static_cast<std::int64_t>(DType::kF64));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    made.names.push_back(node.inputs[i] ? graph.value(node.inputs[i]).name : std::string());
    made.operands.emplace_back();
    if (!node.inputs[i]) continue;
    SS_ASSIGN(const Tensor found, contents(node.inputs[i]));
    const bool varies = maskHas(op->differentiableInputs, i) && isFloating(found.dtype()) && wanted(node.inputs[i]);
    if (varies) made.varied.push_back(i);
    made.operands.back() = varies ? convertTensor(found.view(), DType::kF64).clone() : found.clone();
  }
  if (made.varied.empty())
    return fail(ErrorCode::kUnsupported,
                fmt::format("{}: none of its operands receives a gradient in this step", node.label()));
  for (std::size_t o = 0; o < node.outputs.size(); ++o)
    made.carries_.push_back(node.outputs[o] && maskHas(op->differentiableOutputs, o) &&
                            isFloating(graph.value(node.outputs[o]).type.dtype));
  // Bounds of Clip have the type of what they bound, scales of Resize their own: the one that the op takes is the right one.
  auto whole = made.make(true);
  if (!whole) whole = made.make(false);
  if (!whole) return tl::make_unexpected(whole.error());
  made.withGradients_ = std::move(whole->graph);
  made.plain_ = made.withGradients_;
  made.plain_.removeDeadNodes();
  made.inputs_ = whole->inputs;
  made.gradients_ = whole->gradients;
  made.loss_ = whole->loss;
  made.size_ = whole->size;
  return made;
}

// `othersToo`: floats that do not vary are float64 as well.
Result<OneNode::Made> OneNode::make(bool othersToo) const {
  Made made;
  Graph& graph = made.graph;
  std::vector<ValueId> inputs;
  std::size_t next = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].valid()) {
      inputs.emplace_back();
    } else if (next < varied.size() && varied[next] == i) {
      ++next;
      inputs.push_back(graph.addValue(fmt::format("x{}", i), {ValueKind::kTensor, DType::kF64, shapeOf(operands[i].dims())},
                                      ValueRole::kInput));
      graph.mutableInputs().push_back(inputs.back());
      made.inputs.push_back(inputs.back());
    } else {
      const bool wide = othersToo && isFloating(operands[i].dtype());
      inputs.push_back(graph.addConstant(fmt::format("x{}", i),
                                         wide ? convertTensor(operands[i].view(), DType::kF64).clone() : operands[i]));
    }
  }
  std::vector<std::string> names;
  for (std::size_t o = 0; o < node_.outputs.size(); ++o) names.push_back(node_.outputs[o] ? fmt::format("y{}", o) : "");
  const NodeId id = graph.addNode("node", node_.domain, node_.op, std::move(inputs), std::move(names), node_.attrs);
  graph.mutableNode(id).sinceVersion = node_.sinceVersion;
  Inference inference(graph, *operators_, {.foldElements = -1});
  SS_TRY(inference.run());
  // Outputs that are infinities, or stand for them (masks), say nothing of slopes and would swallow the others.
  Interpreter once(graph, *operators_, Backend::kReference, kKey);
  for (std::size_t t = 0; t < made.inputs.size(); ++t) SS_TRY(once.feed(made.inputs[t], operands[varied[t]]));
  SS_TRY(once.run());
  const auto add = [&](std::string op, std::vector<ValueId> of, Attributes attrs = {}) {
    const std::string name = "sum/" + op;
    return graph.node(graph.addNode(name, "", std::move(op), std::move(of), {name}, std::move(attrs))).output(0);
  };
  for (std::size_t o = 0; o < carries_.size(); ++o) {
    if (!carries_[o]) continue;
    ValueId y = graph.node(id).output(o);
    const auto& shape = graph.value(y).type.shape;
    const auto dims = shape ? knownDims(*shape) : std::nullopt;
    if (!dims)
      return fail(ErrorCode::kUnsupported, fmt::format("{}: its extents depend on what it computes", node_.label()));
    if (graph.value(y).type.dtype != DType::kF64)
      y = add("Cast", {y}, {{"to", static_cast<std::int64_t>(11)}});  // TensorProto.DOUBLE
    if (const Tensor* contents = once.value(graph.node(id).output(o)); contents != nullptr) {
      Tensor counts(DType::kBool, *dims);
      bool all = true;
      for (std::int64_t k = 0; k < counts.elements(); ++k) {
        const bool finite = std::abs(elementAsDouble(contents->view(), k)) < 1e30;
        storeElement(counts.view(), k, finite ? 1 : 0);
        all = all && finite;
      }
      if (!all)
        y = add("Where",
                {graph.addConstant("counts", counts), y, graph.addConstant("zero", Tensor::scalar(DType::kF64, 0))});
    }
    const ValueId weighted = add("Mul", {y, graph.addConstant("w", weightsFor(*dims))});
    const ValueId sum = add("ReduceSum", {weighted}, {{"keepdims", std::int64_t{0}}});
    const ValueId size = add("ReduceSum", {add("Abs", {weighted})}, {{"keepdims", std::int64_t{0}}});
    made.loss = made.loss ? add("Add", {made.loss, sum}) : sum;
    made.size = made.size ? add("Add", {made.size, size}) : size;
  }
  if (!made.loss) return fail(ErrorCode::kUnsupported, fmt::format("{}: no output carries a gradient", node_.label()));
  graph.mutableOutputs() = {made.loss, made.size};
  SS_TRY(inference.run());
  GradientRequest request{made.loss, made.inputs};
  graph.setPass("gradient");
  SS_ASSIGN(const GradientReport report, buildGradient(graph, inference, request));
  made.gradients = report.gradients;
  return made;
}

Result<OneNodeStep> OneNode::step(const std::vector<Tensor>& at, bool withGradients) const {
  Interpreter run(withGradients ? withGradients_ : plain_, *operators_, Backend::kReference, kKey);
  for (std::size_t t = 0; t < inputs_.size(); ++t) SS_TRY(run.feed(inputs_[t], at[varied[t]]));
  SS_TRY(run.run());
  OneNodeStep step;
  step.loss = elementAsDouble(run.value(loss_)->view(), 0);
  step.size = elementAsDouble(run.value(size_)->view(), 0);
  if (!withGradients) return step;
  for (std::size_t t = 0; t < gradients_.size(); ++t) {
    const Tensor* found = gradients_[t] ? run.value(gradients_[t]) : nullptr;
    if (found) {
      step.gradients.push_back(found->clone());
    } else {
      step.gradients.emplace_back(DType::kF64, at[varied[t]].dims());
      for (double& zero : step.gradients.back().as<double>()) zero = 0;
    }
  }
  return step;
}

}  // namespace stepscope
