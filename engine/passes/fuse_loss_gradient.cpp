#include "engine/passes/fuse_loss_gradient.h"

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

constexpr std::size_t kAddend = 5;

// Why the addend of the sum cannot go into the gradient of the loss; empty where it can.
std::string addendRefusal(const Graph& graph, const Readers& readers, const Node& sum, const Node& loss, ValueId addend) {
  const ValueId gradient = loss.output(0);
  const ValueType &own = graph.value(gradient).type, &other = graph.value(addend).type;
  if (loss.input(kAddend)) return "something is added to it already";
  if (!readers.single(gradient)) return "the gradient of the loss is read alone too";
  if (loss.predicates != sum.predicates || loss.phase != sum.phase)
    return "the sum belongs to another phase or branch of If";
  if (addend == gradient || own.dtype != other.dtype || !own.shape || own.shape != other.shape)
    return "what is added is " + other.text() + ", the gradient of the loss " + own.text();
  return own.shape->size() == 2 ? "" : "the classes have axes behind them";
}

}  // namespace

Status fuseLossGradient(Graph& graph, PassContext& context) {
  const Readers readers(graph);
  std::vector<NodeId> gone;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& sum = graph.node(id);
    if ((!isOp(sum, "Add") && !isOp(sum, "Sum")) || sum.inputs.size() < 2) continue;
    for (std::size_t side = 0; side < sum.inputs.size(); ++side) {
      const NodeId producer = graph.value(sum.input(side)).producer;
      if (!producer || graph.node(producer).domain != kInternalDomain ||
          graph.node(producer).op != "SoftmaxCrossEntropyLossGrad")
        continue;
      const Node loss = graph.node(producer);
      if (sum.inputs.size() > 2) {
        context.miss(id, "more than two gradients of the scores are added");
        break;
      }
      const ValueId addend = sum.input(1 - side);
      if (const std::string why = addendRefusal(graph, readers, sum, loss, addend); !why.empty()) {
        context.miss(id, why);
        continue;
      }
      std::vector<ValueId> inputs = loss.inputs;
      inputs.resize(kAddend);
      inputs.push_back(addend);
      becomeLike(graph, id, loss, std::move(inputs), {{producer}});
      gone.push_back(producer);
      context.match();
      break;
    }
  }
  graph.removeNodes(gone);
  return {};
}

}  // namespace stepscope
