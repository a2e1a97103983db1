#include "engine/ir/graph.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace stepscope {

std::string_view phaseName(Phase phase) {
  switch (phase) {
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kRecompute: return "recompute";
    case Phase::kOptimizer: return "optimizer";
  }
  return "forward";
}

std::string ValueType::text() const {
  std::string text(dtypeName(dtype));
  text += shape ? shapeText(*shape) : "[?]";
  if (kind == ValueKind::kSequence) return "sequence(" + text + ")";
  if (kind == ValueKind::kOptional) return "optional(" + text + ")";
  return text;
}

std::string Node::label() const { return (domain.empty() ? op : domain + "." + op) + " '" + name + "'"; }

std::string Graph::uniqueName(std::string wish, bool isValue) {
  const auto taken = [&](const std::string& name) {
    return isValue ? valueNames_.contains(name) : nodeNames_.contains(name);
  };
  if (wish.empty()) wish = isValue ? "value" : "node";
  if (!taken(wish)) return wish;
  int& next = suffixes_[wish];
  std::string name;
  do name = wish + "_" + std::to_string(++next);
  while (taken(name));
  return name;
}

ValueId Graph::addValue(std::string name, ValueType type, ValueRole role) {
  const ValueId id{static_cast<std::int32_t>(values_.size())};
  Value value;
  value.id = id;
  value.name = uniqueName(std::move(name), true);
  value.type = std::move(type);
  value.role = role;
  valueNames_.emplace(value.name, id);
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::addConstant(std::string name, Tensor data) {
  const ValueId id =
      addValue(std::move(name), {ValueKind::kTensor, data.dtype(), shapeOf(data.dims())}, ValueRole::kConstant);
  mutableValue(id).data = std::make_shared<const Tensor>(std::move(data));
  return id;
}

NodeId Graph::addNode(std::string name, std::string domain, std::string op, std::vector<ValueId> inputs,
                      std::vector<std::string> outputNames, Attributes attrs) {
  const NodeId id{static_cast<std::int32_t>(nodes_.size())};
  Node node;
  node.id = id;
  node.name = uniqueName(name.empty() ? op : std::move(name), false);
  node.domain = std::move(domain);
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.provenance.pass = pass_;
  nodeNames_.emplace(node.name, id);
  for (std::size_t i = 0; i < outputNames.size(); ++i) {
    if (outputNames[i].empty()) {
      node.outputs.push_back({});
      continue;
    }
    const ValueId out = addValue(outputNames[i], {}, ValueRole::kNodeOutput);
    values_[static_cast<std::size_t>(out.index)].producer = id;
    values_[static_cast<std::size_t>(out.index)].outputIndex = static_cast<int>(i);
    values_[static_cast<std::size_t>(out.index)].madeBy = id;
    values_[static_cast<std::size_t>(out.index)].madeAs = static_cast<int>(i);
    node.outputs.push_back(out);
  }
  nodes_.push_back(std::move(node));
  order_.push_back(id);
  edits_.push_back({Edit::Kind::kAddNode, id, {}, {}, pass_});
  return id;
}

ValueId Graph::addOutput(NodeId nodeId, std::string name) {
  const ValueId out = addValue(std::move(name), {}, ValueRole::kNodeOutput);
  Node& node = mutableNode(nodeId);
  mutableValue(out).producer = nodeId;
  mutableValue(out).outputIndex = static_cast<int>(node.outputs.size());
  mutableValue(out).madeBy = nodeId;
  mutableValue(out).madeAs = static_cast<int>(node.outputs.size());
  node.outputs.push_back(out);
  logChange(nodeId);
  return out;
}

void Graph::kill(NodeId id) {
  Node& node = mutableNode(id);
  node.alive = false;
  for (const ValueId out : node.outputs)
    if (out) {
      mutableValue(out).alive = false;
      valueNames_.erase(value(out).name);
    }
  nodeNames_.erase(node.name);
  edits_.push_back({Edit::Kind::kRemoveNode, id, {}, {}, pass_});
}

void Graph::removeNode(NodeId id) { removeNodes({id}); }

void Graph::removeNodes(const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return;
  for (const NodeId id : nodes)
    if (node(id).alive) kill(id);
  std::erase_if(order_, [&](NodeId id) { return !node(id).alive; });
}

void Graph::replaceAllUses(ValueId from, ValueId to) { replaceAllUses({{from, to}}); }

void Graph::replaceAllUses(const std::unordered_map<ValueId, ValueId>& replacements) {
  if (replacements.empty()) return;
  const auto replaced = [&](ValueId id) {
    for (auto it = replacements.find(id); it != replacements.end(); it = replacements.find(id)) id = it->second;
    return id;
  };
  for (const NodeId id : order_) {
    Node& node = mutableNode(id);
    for (ValueId& in : node.inputs)
      if (in) in = replaced(in);
    for (Predicate& predicate : node.predicates) predicate.condition = replaced(predicate.condition);
  }
  for (ValueId& out : outputs_) out = replaced(out);
  for (StateUpdate& update : stateUpdates) update.next = replaced(update.next);
  std::vector<ValueId> froms;
  for (const auto& entry : replacements) froms.push_back(entry.first);
  std::sort(froms.begin(), froms.end());
  for (const ValueId from : froms) edits_.push_back({Edit::Kind::kReplaceUses, {}, from, replaced(from), pass_});
}

void Graph::setInput(NodeId id, std::size_t index, ValueId value) {
  Node& node = mutableNode(id);
  if (index >= node.inputs.size()) node.inputs.resize(index + 1);
  if (node.inputs[index] == value) return;
  node.inputs[index] = value;
  logChange(id);
}

void Graph::renameValue(ValueId id, std::string name) {
  Value& value = mutableValue(id);
  if (value.name == name) return;
  valueNames_.erase(value.name);
  value.name = uniqueName(std::move(name), true);
  valueNames_.emplace(value.name, id);
}

ValueId Graph::findValue(std::string_view name) const {
  const auto it = valueNames_.find(std::string(name));
  return it == valueNames_.end() ? ValueId{} : it->second;
}

NodeId Graph::findNode(std::string_view name) const {
  const auto it = nodeNames_.find(std::string(name));
  return it == nodeNames_.end() ? NodeId{} : it->second;
}

std::vector<std::vector<Use>> Graph::uses() const {
  std::vector<std::vector<Use>> uses(values_.size());
  for (const NodeId id : order_) {
    const Node& node = this->node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i]) uses[static_cast<std::size_t>(node.inputs[i].index)].push_back({id, i});
    for (const Predicate& predicate : node.predicates)
      uses[static_cast<std::size_t>(predicate.condition.index)].push_back({id, std::numeric_limits<std::size_t>::max()});
  }
  return uses;
}

Status Graph::sortTopologically() {
  // Kahn's algorithm with the present position as priority: stable, and linear but for the heap.
  std::vector<std::size_t> position(nodes_.size(), 0);
  std::vector<int> pending(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> consumers(nodes_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) position[static_cast<std::size_t>(order_[i].index)] = i;
  const auto depend = [&](const Node& node, ValueId on) {
    if (!on) return;
    const NodeId producer = value(on).producer;
    if (!producer) return;
    consumers[static_cast<std::size_t>(producer.index)].push_back(node.id);
    ++pending[static_cast<std::size_t>(node.id.index)];
  };
  for (const NodeId id : order_) {
    for (const ValueId in : node(id).inputs) depend(node(id), in);
    for (const Predicate& predicate : node(id).predicates) depend(node(id), predicate.condition);
    // What a branch takes from outside of it is an input of the branch, under the outer name.
    for (const auto& [attribute, body] : node(id).subgraphs)
      for (const ValueId captured : body->inputs()) {
        const ValueId outer = findValue(body->value(captured).name);
        if (outer && value(outer).producer != id) depend(node(id), outer);
      }
  }
  using Entry = std::pair<std::size_t, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (const NodeId id : order_)
    if (pending[static_cast<std::size_t>(id.index)] == 0) ready.emplace(position[static_cast<std::size_t>(id.index)], id);
  std::vector<NodeId> sorted;
  sorted.reserve(order_.size());
  while (!ready.empty()) {
    const NodeId id = ready.top().second;
    ready.pop();
    sorted.push_back(id);
    for (const NodeId next : consumers[static_cast<std::size_t>(id.index)])
      if (--pending[static_cast<std::size_t>(next.index)] == 0)
        ready.emplace(position[static_cast<std::size_t>(next.index)], next);
  }
  if (sorted.size() != order_.size()) {
    std::string names;
    int shown = 0;
    for (const NodeId id : order_)
      if (pending[static_cast<std::size_t>(id.index)] > 0 && shown++ < 5)
        names += (names.empty() ? "" : ", ") + node(id).label();
    return invalid("graph '" + name + "': nodes form a cycle or wait for one: " + names + "; expected an acyclic graph");
  }
  order_ = std::move(sorted);
  return {};
}

std::vector<std::string> Graph::verify() const {
  std::vector<std::string> problems;
  std::vector<bool> made(values_.size(), false);
  for (const Value& value : values_)
    if (value.alive && value.role != ValueRole::kNodeOutput) made[static_cast<std::size_t>(value.id.index)] = true;
  const auto check = [&](const Node& node, ValueId in, const char* what) {
    if (!in) return;
    const Value& value = this->value(in);
    if (!value.alive)
      problems.push_back(node.label() + ": " + what + " '" + value.name + "' was removed");
    else if (!made[static_cast<std::size_t>(in.index)])
      problems.push_back(node.label() + ": " + what + " '" + value.name + "' is not computed before it");
  };
  for (const NodeId id : order_) {
    const Node& node = this->node(id);
    if (!node.alive) problems.push_back(node.label() + ": removed but still in the order");
    for (const ValueId in : node.inputs) check(node, in, "input");
    for (const Predicate& predicate : node.predicates) check(node, predicate.condition, "predicate");
    for (const ValueId out : node.outputs) {
      if (!out) continue;
      if (made[static_cast<std::size_t>(out.index)])
        problems.push_back(node.label() + ": output '" + value(out).name + "' is made twice");
      made[static_cast<std::size_t>(out.index)] = true;
    }
  }
  for (const ValueId out : outputs_)
    if (!out || !made[static_cast<std::size_t>(out.index)])
      problems.push_back("graph output '" + (out ? value(out).name : std::string("?")) + "' is made by no node");
  return problems;
}

std::size_t Graph::removeDeadNodes(const std::vector<ValueId>& keep) {
  std::vector<bool> needed(values_.size(), false);
  for (const ValueId id : outputs_)
    if (id) needed[static_cast<std::size_t>(id.index)] = true;
  for (const StateUpdate& update : stateUpdates) needed[static_cast<std::size_t>(update.next.index)] = true;
  for (const ValueId id : keep)
    if (id) needed[static_cast<std::size_t>(id.index)] = true;
  std::vector<NodeId> kept;
  std::vector<NodeId> dead;
  for (std::size_t i = order_.size(); i-- > 0;) {
    const Node& node = this->node(order_[i]);
    const bool live = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId out) { return out && needed[static_cast<std::size_t>(out.index)]; });
    if (!live) {
      dead.push_back(order_[i]);
      continue;
    }
    kept.push_back(order_[i]);
    for (const ValueId in : node.inputs)
      if (in) needed[static_cast<std::size_t>(in.index)] = true;
    for (const Predicate& predicate : node.predicates) needed[static_cast<std::size_t>(predicate.condition.index)] = true;
  }
  if (dead.empty()) return 0;
  std::reverse(kept.begin(), kept.end());
  order_ = std::move(kept);
  for (const NodeId id : dead) kill(id);
  return dead.size();
}

void Graph::markImported() {
  for (Value& value : values_) {
    value.madeBy = value.alive ? value.producer : NodeId{};
    value.madeAs = value.outputIndex;
  }
  births_ = std::make_shared<const Births>(Births{.importedNodes = nodes_.size(),
                                                  .importedValues = values_.size(),
                                                  .importedEdits = edits_.size(),
                                                  .ops = {},
                                                  .first = {0},
                                                  .inputs = {}});
  recordBirths();
}

void Graph::recordBirths() {
  if (!births_ || births_->ops.size() == nodes_.size()) return;
  auto births = std::make_shared<Births>(*births_);
  births->ops.reserve(nodes_.size());
  births->first.reserve(nodes_.size() + 1);
  for (std::size_t i = births->ops.size(); i < nodes_.size(); ++i) {
    const Node& node = this->node({static_cast<std::int32_t>(i)});
    births->ops.push_back(node.alive ? InternedText(node.op) : InternedText());
    if (node.alive) births->inputs.insert(births->inputs.end(), node.inputs.begin(), node.inputs.end());
    births->first.push_back(static_cast<std::uint32_t>(births->inputs.size()));
  }
  births_ = std::move(births);
}

const Births& Graph::births() const {
  static const Births none{.first = {0}};
  return births_ ? *births_ : none;
}

}  // namespace stepscope
