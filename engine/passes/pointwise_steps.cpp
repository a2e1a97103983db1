#include "engine/passes/pointwise_steps.h"

#include <algorithm>
#include <cmath>

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

bool isNumber(DType dtype) { return dtype == DType::kF32 || isLow(dtype); }

class StepWriter {
 public:
  StepWriter(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  std::optional<NodeSteps> write() {
    if (!writeSteps() || !typesFit()) return std::nullopt;
    return std::move(steps_);
  }

 private:
  std::size_t step(PointwiseOp op, std::size_t a, std::size_t b = 0, std::size_t c = 0) {
    steps_.steps.push_back({op, {a, b, c}});
    return NodeSteps::kResults + steps_.steps.size() - 1;
  }
  std::size_t constant(double value) {
    steps_.constants.push_back(static_cast<float>(value));
    return NodeSteps::kConstants + steps_.constants.size() - 1;
  }
  DType typeOf(ValueId id) const { return graph_.value(id).type.dtype; }
  // One result of its first inputs, all of which are there.
  bool takes(std::size_t least, std::size_t most) const {
    const std::size_t n = node_.inputs.size();
    return n >= least && n <= most && std::ranges::all_of(node_.inputs, [](ValueId in) { return in.valid(); });
  }
  void repeat(PointwiseOp op) {
    std::size_t last = 0;
    for (std::size_t i = 1; i < node_.inputs.size(); ++i) last = step(op, last, i);
  }
  bool tanhForm() const { return node_.attrs.text("approximate", "none") == "tanh"; }

  bool writeSteps() {
    const std::string& op = node_.op;
    if (node_.domain == kInternalDomain) {
      if (!takes(2, 2)) return false;
      if (op == "ReluGrad") return step(PointwiseOp::kReluGrad, 0, 1), true;
      if (op != "GeluGrad") return false;
      return step(tanhForm() ? PointwiseOp::kGeluTanhGrad : PointwiseOp::kGeluGrad, 0, 1), true;
    }
    if (node_.domain == "com.microsoft") return writeMicrosoft();
    if (!node_.domain.empty()) return false;
    if (op == "Cast") return takes(1, 1) && writeCast();
    if (op == "Gelu") return takes(1, 1) && (step(tanhForm() ? PointwiseOp::kGeluTanh : PointwiseOp::kGelu, 0), true);
    if (op == "LeakyRelu") {
      if (!takes(1, 1)) return false;
      const std::size_t scaled = step(PointwiseOp::kMul, 0, constant(node_.attrs.real("alpha", 0.01F)));
      return step(PointwiseOp::kWhere, step(PointwiseOp::kLess, 0, constant(0)), scaled, 0), true;
    }
    if (op == "Clip") return writeClip();
    if (op == "Sum" || op == "Max" || op == "Min") {
      if (!takes(2, kMostPointwiseInputs)) return false;
      return repeat(op == "Max" ? PointwiseOp::kMax : op == "Min" ? PointwiseOp::kMin : PointwiseOp::kAdd), true;
    }
    const auto same = pointwiseOp(op);
    if (!same || !takes(infoOf(*same).arity, infoOf(*same).arity)) return false;
    return step(*same, 0, 1, 2), true;
  }

  bool writeMicrosoft() {
    const std::string& op = node_.op;
    if (op == "QuickGelu") {
      if (!takes(1, 1)) return false;
      const float alpha = node_.attrs.real("alpha", 1.702F);
      const std::size_t x = alpha == 1 ? 0 : step(PointwiseOp::kMul, 0, constant(alpha));
      return step(PointwiseOp::kMul, 0, step(PointwiseOp::kSigmoid, x)), true;
    }
    if ((op == "BiasGelu" && takes(2, 2)) || (op == "FastGelu" && takes(1, 2)) || (op == "Gelu" && takes(1, 1))) {
      const std::size_t x = node_.inputs.size() == 2 ? step(PointwiseOp::kAdd, 0, 1) : 0;
      return step(op == "FastGelu" ? PointwiseOp::kGeluTanh : PointwiseOp::kGelu, x), true;
    }
    return false;
  }

  bool writeClip() {
    if (node_.inputs.empty() || node_.inputs.size() > 3 || !node_.input(0)) return false;
    std::size_t x = 0;
    if (node_.input(1)) x = step(PointwiseOp::kMax, x, 1);
    if (node_.input(2)) x = step(PointwiseOp::kMin, x, 2);
    return !steps_.steps.empty();
  }

  bool writeCast() {
    const DType from = typeOf(node_.input(0));
    if (!isNumber(typeOf(node_.output(0)))) return false;
    if (from == DType::kBool) step(PointwiseOp::kFromMask, 0);
    return from == DType::kBool || isNumber(from);
  }

  // Masks where steps read masks, numbers elsewhere.
  bool typesFit() const {
    const bool mask = !steps_.steps.empty() && infoOf(steps_.steps.back().op).mask;
    const DType result = typeOf(node_.output(0));
    if (mask ? result != DType::kBool : !isNumber(result)) return false;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      if (!node_.input(i)) continue;
      if (steps_.steps.empty() && !isNumber(typeOf(node_.input(i)))) return false;
      for (const PointwiseStep& step : steps_.steps)
        for (std::size_t k = 0; k < infoOf(step.op).arity; ++k)
          if (step.operands[k] == i &&
              (k < infoOf(step.op).masks ? typeOf(node_.input(i)) != DType::kBool : !isNumber(typeOf(node_.input(i)))))
            return false;
    }
    return true;
  }

  const Graph& graph_;
  const Node& node_;
  NodeSteps steps_;
};

}  // namespace

std::optional<NodeSteps> stepsOf(const Graph& graph, const Node& node) {
  if (!node.subgraphs.empty() || node.outputs.size() != 1 || !node.output(0)) return std::nullopt;
  return StepWriter(graph, node).write();
}

void setChainType(const Graph& graph, const std::vector<ValueId>& inputs, DType result, Attributes& attrs) {
  const auto typeOf = [&](ValueId in) { return graph.value(in).type.dtype; };
  if (std::ranges::any_of(inputs, [&](ValueId in) { return typeOf(in) != DType::kBool && typeOf(in) != result; }) ||
      std::ranges::all_of(inputs, [&](ValueId in) { return typeOf(in) == DType::kBool; }))
    attrs.set("output_type", static_cast<std::int64_t>(result));
}

void becomeChain(Graph& graph, NodeId id, const NodeSteps& steps) {
  std::vector<ValueId> inputs = graph.node(id).inputs;
  const std::size_t own = inputs.size();
  for (const float constant : steps.constants)
    inputs.push_back(graph.addConstant("step", Tensor::scalar(DType::kF32, static_cast<double>(constant))));
  PointwiseProgram program{inputs.size(), steps.steps};
  for (PointwiseStep& step : program.steps)
    for (std::size_t k = 0; k < infoOf(step.op).arity; ++k) {
      std::size_t& operand = step.operands[k];
      if (operand >= NodeSteps::kResults)
        operand += inputs.size() - NodeSteps::kResults;
      else if (operand >= NodeSteps::kConstants)
        operand += own - NodeSteps::kConstants;
    }
  Attributes attributes{{"steps", program.text()}};
  setChainType(graph, inputs, graph.value(graph.node(id).output(0)).type.dtype, attributes);
  Node& node = graph.mutableNode(id);
  node.domain = kInternalDomain;
  node.op = "Pointwise";
  node.inputs = std::move(inputs);
  node.attrs = std::move(attributes);
  node.provenance.pass = graph.pass();
  graph.logChange(id);
}

}  // namespace stepscope
