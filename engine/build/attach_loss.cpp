#include "engine/build/attach_loss.h"

#include <fmt/format.h>

#include "engine/build/loss_graph.h"
#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

// Rank 0, or one element of rank 1, which the gradient's seed serves as well.
bool isScalarFloat(const ValueType& type) {
  if (type.kind != ValueKind::kTensor || !isFloating(type.dtype) || !type.shape) return false;
  for (const Dim& dim : *type.shape)
    if (!(dim == Dim(1))) return false;
  return type.shape->size() <= 1;
}

std::string listOutputs(const Graph& graph) {
  std::string text;
  for (const ValueId out : graph.outputs())
    text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", graph.value(out).name, graph.value(out).type.text());
  return text.empty() ? "none" : text;
}

class Attacher {
 public:
  Attacher(Graph& graph, Inference& inference) : graph_(graph), inference_(inference) {}

  Result<ValueId> attach(const std::string& function, ValueId logits, const std::string& labelsName) {
    const ValueType type = graph_.value(logits).type;
    if (!isFloating(type.dtype))
      return invalid(fmt::format("output '{}': {}; expected a float tensor to attach a loss to", graph_.value(logits).name,
                                 type.text()));
    if (!type.shape)
      return invalid(fmt::format("output '{}': its rank is unknown; expected a known rank to attach a loss to",
                                 graph_.value(logits).name));
    if (function == "cross_entropy") return crossEntropy(logits, *type.shape, labelsName);
    SS_ASSIGN(const ValueId target, labels(labelsName, type.dtype, *type.shape));
    if (function == "mse") {
      SS_ASSIGN(const ValueId difference, emit("Sub", {logits, target}));
      SS_ASSIGN(const ValueId square, emit("Mul", {difference, difference}));
      return emit("ReduceMean", {square}, {{"keepdims", std::int64_t{0}}});
    }
    if (function == "l1") {
      SS_ASSIGN(const ValueId difference, emit("Sub", {logits, target}));
      SS_ASSIGN(const ValueId magnitude, emit("Abs", {difference}));
      return emit("ReduceMean", {magnitude}, {{"keepdims", std::int64_t{0}}});
    }
    SS_ASSIGN(const ValueId positive, emit("Relu", {logits}));
    SS_ASSIGN(const ValueId product, emit("Mul", {logits, target}));
    SS_ASSIGN(const ValueId linear, emit("Sub", {positive, product}));
    SS_ASSIGN(const ValueId magnitude, emit("Abs", {logits}));
    SS_ASSIGN(const ValueId negative, emit("Neg", {magnitude}));
    SS_ASSIGN(const ValueId tail, emit("Softplus", {negative}));
    SS_ASSIGN(const ValueId sum, emit("Add", {linear, tail}));
    return emit("ReduceMean", {sum}, {{"keepdims", std::int64_t{0}}});
  }

 private:
  Result<ValueId> crossEntropy(ValueId logits, const Shape& shape, const std::string& labelsName) {
    if (shape.size() < 2)
      return invalid(fmt::format("output '{}': shape {}; expected [N, C, …] for cross_entropy", graph_.value(logits).name,
                                 shapeText(shape)));
    const bool last = shape.size() <= 3;
    Shape labelShape = shape;
    labelShape.erase(labelShape.begin() + (last ? static_cast<std::ptrdiff_t>(shape.size()) - 1 : 1));
    SS_ASSIGN(ValueId target, labels(labelsName, DType::kI64, labelShape));
    ValueId scores = logits;
    if (shape.size() == 3) {
      // [B, S, V] → [B·S, V]
      const ValueId rows = graph_.addConstant("loss/flatten", Tensor::ints(std::vector<std::int64_t>{-1}));
      if (!shape.back().known())
        return invalid(fmt::format("output '{}': the number of classes {} is not known; expected a number",
                                   graph_.value(logits).name, shape.back().text()));
      const ValueId matrix =
          graph_.addConstant("loss/matrix", Tensor::ints(std::vector<std::int64_t>{-1, shape.back().value()}));
      SS_ASSIGN(scores, emit("Reshape", {logits, matrix}));
      SS_ASSIGN(target, emit("Reshape", {target, rows}));
    }
    return emit("SoftmaxCrossEntropyLoss", {scores, target},
                {{"ignore_index", std::int64_t{-100}}, {"reduction", std::string("mean")}});
  }

  Result<ValueId> labels(const std::string& name, DType dtype, const Shape& shape) {
    if (const ValueId existing = graph_.findValue(name)) {
      const Value& value = graph_.value(existing);
      if (value.role != ValueRole::kInput)
        return invalid(fmt::format("labels '{}': not an input of the model; expected an input or a new name", name));
      return existing;
    }
    const ValueId id = graph_.addValue(name, {ValueKind::kTensor, dtype, shape}, ValueRole::kInput);
    graph_.mutableInputs().push_back(id);
    return id;
  }

  Result<ValueId> emit(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const NodeId id = graph_.addNode(fmt::format("loss/{}", op), "", std::string(op), std::move(inputs),
                                     {fmt::format("loss/{}_out", op)}, std::move(attrs));
    Node& node = graph_.mutableNode(id);
    node.sinceVersion = kInternalOpset;
    node.provenance.imported = id;
    node.provenance.modulePath = InternedText("loss");
    node.origin = {.kind = Origin::Kind::kRoot, .detail = InternedText(fmt::format("loss/{}", op))};
    SS_TRY(inference_.inferNode(id));
    return node.output(0);
  }

  Graph& graph_;
  Inference& inference_;
};

}  // namespace

LossChoice proposeLoss(const Graph& graph) {
  std::vector<ValueId> scalars;
  for (const ValueId out : graph.outputs())
    if (isScalarFloat(graph.value(out).type)) scalars.push_back(out);
  if (scalars.size() == 1) return {scalars[0], "the only scalar float output"};
  for (const ValueId out : scalars)
    if (graph.value(out).name == "loss") return {out, "the scalar float output named 'loss'"};
  return {{}, scalars.empty() ? "no scalar float output" : fmt::format("{} scalar float outputs", scalars.size())};
}

Result<LossChoice> attachLoss(Graph& graph, Inference& inference, const TrainOptions& o,
                              std::shared_ptr<const Registry> registry) {
  if (!o.lossGraph.empty()) return attachLossGraph(graph, inference, o, std::move(registry));
  if (!o.lossFn.empty()) {
    ValueId logits;
    if (!o.logits.empty()) {
      logits = graph.findValue(o.logits);
      if (!logits)
        return fail(ErrorCode::kNotFound,
                    fmt::format("logits '{}': no such value; outputs are {}", o.logits, listOutputs(graph)));
    } else {
      std::vector<ValueId> candidates;
      for (const ValueId out : graph.outputs())
        if (isFloating(graph.value(out).type.dtype) && !isScalarFloat(graph.value(out).type)) candidates.push_back(out);
      if (candidates.size() != 1)
        return invalid(fmt::format("loss '{}': {} outputs could be its logits; expected --logits NAME; outputs are {}",
                                   o.lossFn, candidates.size(), listOutputs(graph)));
      logits = candidates[0];
    }
    SS_ASSIGN(const ValueId loss,
              Attacher(graph, inference).attach(o.lossFn, logits, o.labels.empty() ? "labels" : o.labels));
    graph.renameValue(loss, "loss");
    graph.recordBirths();
    return LossChoice{loss, fmt::format("{} attached to '{}'", o.lossFn, graph.value(logits).name)};
  }
  if (!o.logits.empty())
    return invalidOption("logits", fmt::format("'{}' without a loss to attach; expected --loss-fn too", o.logits));
  if (!o.loss.empty()) {
    const ValueId loss = graph.findValue(o.loss);
    if (!loss)
      return fail(ErrorCode::kNotFound, fmt::format("loss '{}': no such value; outputs are {}", o.loss, listOutputs(graph)));
    const ValueType& type = graph.value(loss).type;
    if (!isFloating(type.dtype) || (type.shape && !isScalarFloat(type)))
      return invalid(fmt::format("loss '{}': {}; expected a float scalar; hint: --loss-fn attaches a loss to an output",
                                 o.loss, type.text()));
    return LossChoice{loss, "named by --loss"};
  }
  LossChoice choice = proposeLoss(graph);
  if (!choice.loss)
    return invalid(fmt::format("loss: {}; expected --loss OUTPUT or --loss-fn FUNCTION; outputs are {}", choice.reason,
                               listOutputs(graph)));
  return choice;
}

}  // namespace stepscope
