#include "engine/passes/fuse_cross_entropy.h"

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

class Fuser {
 public:
  Fuser(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& loss = graph_.node(id);
      const bool own = isOp(loss, "SoftmaxCrossEntropyLoss") || isOp(loss, "NegativeLogLikelihoodLoss");
      const bool internal = loss.domain == "com.microsoft" && loss.op == "SoftmaxCrossEntropyLossInternal";
      if (!own && !internal) continue;
      // LogSoftmax behind a Cast, or a Cast behind it: what stands nearest goes first.
      while (absorbCast(id) || (own && takeLogarithms(id))) {
      }
    }
    graph_.removeNodes(gone_);
    return {};
  }

 private:
  // The logarithms may be cast to float32 in front of the loss: it then does that.
  bool takeLogarithms(NodeId id) {
    const Node& loss = graph_.node(id);
    const Node* cast = lowCast(loss.input(0));
    const ValueId read = cast && isOp(loss, "NegativeLogLikelihoodLoss") ? cast->input(0) : loss.input(0);
    const Node* logarithms = producerOf(graph_, read, "LogSoftmax");
    if (!logarithms) return false;
    const Readers readers(graph_);
    const auto& shape = graph_.value(read).type.shape;
    const std::int64_t axis = logarithms->attrs.integer("axis", -1);
    std::string condition;
    if (!shape || shape->size() < 2)
      condition = "the rank of the scores is not known";
    else if (axis != 1 && axis != 1 - static_cast<std::int64_t>(shape->size()))
      condition = "LogSoftmax runs along another axis than the classes";
    else if (!readers.single(read) || !readers.single(loss.input(0)))
      condition = "the logarithms are read elsewhere too";
    else if (logarithms->predicates != loss.predicates)
      condition = "LogSoftmax belongs to another branch of If";
    if (!condition.empty()) return context_.miss(id, condition), false;
    const bool low = read != loss.input(0);
    const NodeId castId = low ? cast->id : NodeId{};
    take(id, logarithms->id, logarithms->input(0), "SoftmaxCrossEntropyLoss", low);
    if (low) gone_.push_back(castId);
    return true;
  }

  bool absorbCast(NodeId id) {
    const Node& loss = graph_.node(id);
    const Node* cast = loss.op == "NegativeLogLikelihoodLoss" ? nullptr : lowCast(loss.input(0));
    if (!cast) return false;
    std::string condition;
    if (!Readers(graph_).single(loss.input(0)))
      condition = "the scores in float32 are read elsewhere too";
    else if (loss.input(2))
      condition = "class weights would have another type than the scores";
    else if (cast->predicates != loss.predicates)
      condition = "the Cast belongs to another branch of If";
    if (!condition.empty()) return context_.miss(id, condition), false;
    take(id, cast->id, cast->input(0), "SoftmaxCrossEntropyLoss", true);
    return true;
  }

  // A Cast of a low type to float32.
  const Node* lowCast(ValueId value) const {
    const Node* cast = producerOf(graph_, value, "Cast");
    if (!cast || !isLow(graph_.value(cast->input(0)).type.dtype) || graph_.value(value).type.dtype != DType::kF32)
      return nullptr;
    return cast;
  }

  void take(NodeId id, NodeId source, ValueId scores, std::string op, bool low) {
    graph_.setInput(id, 0, scores);
    Node& target = graph_.mutableNode(id);
    target.op = std::move(op);
    if (low || !target.domain.empty()) {  // the form that may answer in another type than it reads
      target.domain = "com.microsoft";
      target.op = "SoftmaxCrossEntropyLossInternal";
      target.attrs.set("output_type", std::int64_t{1});
    }
    target.provenance.sources.push_back(source);
    target.provenance.pass = graph_.pass();
    graph_.logChange(id);
    gone_.push_back(source);
    context_.match();
  }

  Graph& graph_;
  PassContext& context_;
  std::vector<NodeId> gone_;
};

}  // namespace

Status fuseCrossEntropy(Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace stepscope
