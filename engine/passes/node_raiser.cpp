#include "engine/passes/node_raiser.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/passes/beside.h"

namespace stepscope {

Result<std::size_t> NodeRaiser::walk(const std::function<Result<bool>()>& raise,
                                     const std::function<Result<std::size_t>(Graph&)>& inside) {
  std::size_t raised = 0;
  std::vector<NodeId> order;
  for (const NodeId id : std::vector<NodeId>(graph_.order())) {
    before_.clear();
    after_.clear();
    node_ = id;
    if (!node().subgraphs.empty())
      for (auto& [name, subgraph] : graph_.mutableNode(id).subgraphs.edit()) {
        if (!subgraph) continue;
        auto copy = std::make_shared<Graph>(*subgraph);
        copy->setPass(graph_.pass());
        SS_ASSIGN(const std::size_t found, inside(*copy));
        if (found == 0) continue;
        subgraph = std::move(copy);
        graph_.logChange(id);
        raised += found;
      }
    SS_ASSIGN(const bool rewritten, raise());
    if (rewritten) ++raised;
    order.insert(order.end(), before_.begin(), before_.end());
    order.push_back(id);
    order.insert(order.end(), after_.begin(), after_.end());
  }
  if (order != graph_.order()) graph_.setOrder(std::move(order));
  return raised;
}

tl::unexpected<Error> NodeRaiser::error(std::string message) const {
  return unsupported(node().label() + ": " + std::move(message));
}

Status NodeRaiser::become(const char* op, int opset) {
  Node& changed = graph_.mutableNode(node_);
  changed.domain.clear();
  changed.op = op;
  changed.sinceVersion = opset;
  graph_.logChange(node_);
  return {};
}

void NodeRaiser::setAttribute(const char* name, AttrValue value) {
  graph_.mutableNode(node_).attrs.set(name, std::move(value));
}

void NodeRaiser::eraseAttribute(std::string_view name) {
  if (node().attrs.has(name)) graph_.mutableNode(node_).attrs.erase(name);
}

ValueId NodeRaiser::emit(const char* op, std::vector<ValueId> inputs, Attributes attributes) {
  const ValueId result = emitBeside(graph_, node_, op, std::move(inputs), std::move(attributes));
  before_.push_back(graph_.value(result).producer);
  return result;
}

std::vector<ValueId> NodeRaiser::emitAll(const char* op, std::vector<ValueId> inputs, std::size_t results,
                                         Attributes attributes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < results; ++i) names.push_back(node().name + "/" + op + "_" + std::to_string(i));
  before_.push_back(addBeside(graph_, node_, op, std::move(inputs), std::move(names), std::move(attributes)));
  return graph_.node(before_.back()).outputs;
}

ValueId NodeRaiser::factor(const char* name, float value, ValueId like) {
  return emit("CastLike", {graph_.addConstant(node().name + "/" + name, Tensor::scalar(DType::kF32, value)), like});
}

ValueId NodeRaiser::ints(const char* name, const std::vector<std::int64_t>& values) {
  return graph_.addConstant(node().name + "/" + name, Tensor::ints(values));
}

void NodeRaiser::behind(const char* op, std::vector<ValueId> others, Attributes attributes) {
  const ValueId result = node().output(0);
  if (!result) return;
  const NodeId last = addBeside(graph_, node_, op, {}, {}, std::move(attributes));
  std::vector<ValueId> operands{takeOver(graph_, last, result, op)};
  operands.insert(operands.end(), others.begin(), others.end());
  graph_.mutableNode(last).inputs = std::move(operands);
  after_.insert(after_.begin(), last);
}

void NodeRaiser::handOn(ValueId output, ValueId value) {
  const NodeId handed = addBeside(graph_, node_, "Identity", {value}, {});
  graph_.moveOutput(output, handed, 0);
  after_.push_back(handed);
}

bool NodeRaiser::isRead(ValueId value) {
  if (!uses_) uses_ = graph_.uses();
  const auto& outputs = graph_.outputs();
  return std::find(outputs.begin(), outputs.end(), value) != outputs.end() || !uses_->of(value).empty();
}

}  // namespace stepscope
