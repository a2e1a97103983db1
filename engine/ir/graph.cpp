#include "engine/ir/graph.h"

#include <algorithm>

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

std::string Node::label() const { return (domain.empty() ? op.str() : domain + "." + op) + " '" + name + "'"; }

Node& Graph::mutableNode(NodeId id) { return nodes_.edit(static_cast<std::size_t>(id.index)).edit(); }

Value& Graph::mutableValue(ValueId id) { return values_.edit(static_cast<std::size_t>(id.index)).edit(); }

std::size_t Graph::sharedWith(const Graph& other) const {
  std::size_t shared = 0;
  for (std::size_t i = 0; i < std::min(nodes_.size(), other.nodes_.size()); ++i) shared += nodes_[i].isSame(other.nodes_[i]);
  for (std::size_t i = 0; i < std::min(values_.size(), other.values_.size()); ++i)
    shared += values_[i].isSame(other.values_[i]);
  return shared;
}

const std::vector<NodeId>& Graph::order() const {
  static const std::vector<NodeId> none;
  return order_ ? *order_ : none;
}

void Graph::setOrder(std::vector<NodeId> order) { order_ = std::make_shared<std::vector<NodeId>>(std::move(order)); }

std::vector<NodeId>& Graph::mutableOrder() {
  if (!order_ || order_.use_count() > 1) order_ = std::make_shared<std::vector<NodeId>>(order());
  return *order_;
}

std::int32_t Graph::nodeNamed(std::string_view name) const {
  return nodeNames_.find(
      name, [&](std::int32_t id) { return alive(NodeId{id}) ? std::string_view(node({id}).name) : std::string_view(); });
}

std::int32_t Graph::valueNamed(std::string_view name) const {
  return valueNames_.find(
      name, [&](std::int32_t id) { return alive(ValueId{id}) ? std::string_view(value({id}).name) : std::string_view(); });
}

std::string Graph::uniqueName(std::string wish, bool isValue) {
  const auto taken = [&](const std::string& name) { return (isValue ? valueNamed(name) : nodeNamed(name)) >= 0; };
  if (wish.empty()) wish = isValue ? "value" : "node";
  if (!taken(wish)) return wish;
  int& last = suffixes_.of(wish);
  std::string name;
  do name = wish + "_" + std::to_string(++last);
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
  valueNames_.insert(value.name, id.index);
  values_.push_back(CopyOnWrite(std::move(value)));
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
  node.domain = domain;
  node.op = op;
  node.inputs = inputs;
  node.attrs = std::move(attrs);
  node.attrs.shareEqual();
  node.provenance.pass = pass_;
  nodeNames_.insert(node.name, id.index);
  node.outputs.reserve(outputNames.size());
  for (std::size_t i = 0; i < outputNames.size(); ++i) {
    if (outputNames[i].empty()) {
      node.outputs.push_back({});
      continue;
    }
    const ValueId out = addValue(std::move(outputNames[i]), {}, ValueRole::kNodeOutput);
    Value& made = mutableValue(out);
    made.producer = made.madeBy = id;
    made.outputIndex = made.madeAs = static_cast<int>(i);
    node.outputs.push_back(out);
  }
  nodes_.push_back(CopyOnWrite(std::move(node)));
  mutableOrder().push_back(id);
  edits_.push_back({Edit::Kind::kAddNode, id, {}, {}, pass_});
  return id;
}

ValueId Graph::addOutput(NodeId id, std::string name) { return addOutput(id, std::move(name), node(id).outputs.size()); }

ValueId Graph::addOutput(NodeId id, std::string name, std::size_t index) {
  const ValueId out = addValue(std::move(name), {}, ValueRole::kNodeOutput);
  Value& made = mutableValue(out);
  made.madeBy = id;
  made.madeAs = static_cast<int>(index);
  moveOutput(out, id, index);
  return out;
}

void Graph::moveOutput(ValueId id, NodeId to, std::size_t index) {
  const NodeId from = value(id).producer;
  if (from) {
    mutableNode(from).outputs[static_cast<std::size_t>(value(id).outputIndex)] = {};
    if (from != to) logChange(from);
  }
  inheritOutput(id, to, index);
}

void Graph::inheritOutput(ValueId id, NodeId to, std::size_t index) {
  Node& node = mutableNode(to);
  if (node.outputs.size() <= index) node.outputs.resize(index + 1);
  SS_CHECK(!node.outputs[index].valid());
  node.outputs[index] = id;
  Value& moved = mutableValue(id);
  moved.producer = to;
  moved.outputIndex = static_cast<int>(index);
  logChange(to);
}

void Graph::swapOutputs(ValueId a, ValueId b) {
  Value &x = mutableValue(a), &y = mutableValue(b);
  SS_CHECK(x.producer.valid() && y.producer.valid());
  std::swap(x.producer, y.producer);
  std::swap(x.outputIndex, y.outputIndex);
  for (const Value* value : {&x, &y}) {
    mutableNode(value->producer).outputs[static_cast<std::size_t>(value->outputIndex)] = value->id;
    logChange(value->producer);
  }
}

namespace {

void addTo(std::vector<bool>& set, std::int32_t index) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= set.size()) set.resize(at + 1);
  set[at] = true;
}

}  // namespace

void Graph::removeValue(ValueId id) {
  if (!alive(id)) return;
  const Value& gone = value(id);
  if (gone.producer) {
    Few<ValueId>& outputs = mutableNode(gone.producer).outputs;
    const auto place = static_cast<std::size_t>(gone.outputIndex);
    if (place < outputs.size() && outputs[place] == id) {
      outputs[place] = {};
      logChange(gone.producer);
    }
  }
  addTo(goneValues_, id.index);
}

// Nodes, values and the tables of their names stay as they are: copies of the graph, which still have them, share those.
void Graph::kill(NodeId id) {
  addTo(goneNodes_, id.index);
  for (const ValueId out : node(id).outputs)
    if (out && value(out).producer == id) addTo(goneValues_, out.index);
  edits_.push_back({Edit::Kind::kRemoveNode, id, {}, {}, pass_});
}

void Graph::removeNode(NodeId id) { removeNodes({id}); }

void Graph::removeNodes(const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return;
  for (const NodeId id : nodes)
    if (alive(id)) kill(id);
  std::erase_if(mutableOrder(), [&](NodeId id) { return !alive(id); });
}

void Graph::replaceAllUses(ValueId from, ValueId to) { replaceAllUses({{from, to}}); }

void Graph::replaceAllUses(const std::unordered_map<ValueId, ValueId>& replacements) {
  if (replacements.empty()) return;
  // The end of each chain, so that a chain is walked once.
  std::unordered_map<ValueId, ValueId> last;
  last.reserve(replacements.size());
  std::vector<ValueId> froms, chain;
  for (const auto& entry : replacements) froms.push_back(entry.first);
  std::sort(froms.begin(), froms.end());
  for (const ValueId from : froms) {
    ValueId end = from;
    for (auto it = replacements.find(end); it != replacements.end() && !last.contains(end); it = replacements.find(end)) {
      chain.push_back(end);
      end = it->second;
    }
    if (const auto known = last.find(end); known != last.end()) end = known->second;
    for (const ValueId id : chain) last.emplace(id, end);
    chain.clear();
  }
  const auto replaced = [&](ValueId id) {
    const auto it = last.find(id);
    return it == last.end() ? id : it->second;
  };
  const auto reads = [&](const Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return in && last.contains(in); }) ||
           std::any_of(node.predicates.begin(), node.predicates.end(),
                       [&](const Predicate& predicate) { return last.contains(predicate.condition); });
  };
  for (const NodeId id : order()) {
    if (!reads(node(id))) continue;
    Node& reader = mutableNode(id);
    for (ValueId& in : reader.inputs)
      if (in) in = replaced(in);
    if (!reader.predicates.empty())
      for (Predicate& predicate : reader.predicates.edit()) predicate.condition = replaced(predicate.condition);
  }
  for (ValueId& out : outputs_) out = replaced(out);
  for (StateUpdate& update : stateUpdates) update.next = replaced(update.next);
  for (const ValueId from : froms) edits_.push_back({Edit::Kind::kReplaceUses, {}, from, replaced(from), pass_});
}

void Graph::setInput(NodeId id, std::size_t index, ValueId value) {
  if (node(id).input(index) == value && index < node(id).inputs.size()) return;
  Node& node = mutableNode(id);
  if (index >= node.inputs.size()) node.inputs.resize(index + 1);
  node.inputs[index] = value;
  logChange(id);
}

void Graph::renameValue(ValueId id, std::string name) {
  if (value(id).name == name) return;
  Value& value = mutableValue(id);
  valueNames_.erase(value.name, id.index);
  value.name = uniqueName(std::move(name), true);
  valueNames_.insert(value.name, id.index);
}

ValueId Graph::findValue(std::string_view name) const { return {valueNamed(name)}; }

NodeId Graph::findNode(std::string_view name) const { return {nodeNamed(name)}; }

void Graph::markImported() {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& value = *values_[i];
    const NodeId maker = alive(value.id) ? value.producer : NodeId{};
    if (value.madeBy == maker && value.madeAs == value.outputIndex) continue;
    Value& marked = mutableValue(value.id);
    marked.madeBy = maker;
    marked.madeAs = marked.outputIndex;
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
  for (std::size_t i = births->ops.size(); i < nodes_.size(); ++i) {
    const Node& node = this->node({static_cast<std::int32_t>(i)});
    births->ops.push_back(alive(node.id) ? node.op : InternedText());
    if (alive(node.id))
      for (const ValueId input : node.inputs) births->inputs.push_back(input);
    births->first.push_back(static_cast<std::uint32_t>(births->inputs.size()));
  }
  births_ = std::move(births);
}

const Births& Graph::births() const {
  static const Births none{.first = {0}};
  return births_ ? *births_ : none;
}

}  // namespace stepscope
