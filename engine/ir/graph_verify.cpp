// Graph::verify: the invariants of graph.h, one after the other; all problems, not the first.
#include <unordered_set>

#include "engine/ir/graph.h"

namespace stepscope {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), made_(graph.valueCapacity(), false) {}

  std::vector<std::string> run() {
    for (std::size_t i = 0; i < graph_.valueCapacity(); ++i) {
      const Value& value = graph_.value({static_cast<std::int32_t>(i)});
      if (graph_.alive(value.id) && value.role != ValueRole::kNodeOutput) made_[i] = true;
    }
    nodes();
    values();
    ends();
    stateUpdates();
    return std::move(problems_);
  }

 private:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }
  bool known(ValueId id) const { return id && at(id) < graph_.valueCapacity(); }
  std::string name(ValueId id) const { return known(id) ? "'" + graph_.value(id).name + "'" : "an id that no value has"; }

  void reads(const Node& node, ValueId in, const char* what) {
    if (!known(in))
      add(node.label() + ": " + what + " is " + name(in));
    else if (!graph_.alive(in))
      add(node.label() + ": " + what + " " + name(in) + " was removed");
    else if (!made_[at(in)])
      add(node.label() + ": " + what + " " + name(in) + " is not computed before it");
  }

  void makes(const Node& node, std::size_t index) {
    const ValueId out = node.outputs[index];
    if (!known(out)) return add(node.label() + ": output " + std::to_string(index) + " is " + name(out));
    const Value& value = graph_.value(out);
    const std::string label = node.label() + ": output " + name(out);
    if (!graph_.alive(out)) add(label + " was removed");
    if (value.role != ValueRole::kNodeOutput) add(label + " is an input, a constant or state; expected a result");
    if (made_[at(out)])
      add(label + " is made twice");
    else if (value.producer != node.id || value.outputIndex != static_cast<int>(index))
      add(label + " names another producer or place; expected output " + std::to_string(index) + " of this node");
    made_[at(out)] = true;
  }

  void nodes() {
    std::vector<bool> listed(graph_.nodeCapacity(), false);
    for (const NodeId id : graph_.order()) {
      if (!id || at(id) >= graph_.nodeCapacity()) {
        add("the order lists an id that no node has");
        continue;
      }
      const Node& node = graph_.node(id);
      if (listed[at(id)]) {
        add(node.label() + ": listed twice in the order");
        continue;
      }
      listed[at(id)] = true;
      if (node.id != id) add(node.label() + ": bears another id than its place");
      if (!graph_.alive(id)) add(node.label() + ": removed but still in the order");
      for (const ValueId in : node.inputs)
        if (in) reads(node, in, "input");
      for (const Predicate& predicate : node.predicates) reads(node, predicate.condition, "predicate");
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        if (node.outputs[o]) makes(node, o);
      for (const auto& [attribute, body] : node.subgraphs) {
        if (!body) continue;
        for (const std::string& problem : body->verify()) add(node.label() + ", " + attribute + ": " + problem);
      }
    }
    for (std::size_t i = 0; i < graph_.nodeCapacity(); ++i) {
      const Node& node = graph_.node({static_cast<std::int32_t>(i)});
      if (!graph_.alive(node.id)) continue;
      if (!listed[i]) add(node.label() + ": not in the order");
      if (graph_.findNode(node.name) != node.id) add(node.label() + ": not found by its name; expected names to be unique");
    }
  }

  void values() {
    for (std::size_t i = 0; i < graph_.valueCapacity(); ++i) {
      const Value& value = graph_.value({static_cast<std::int32_t>(i)});
      if (!graph_.alive(value.id)) continue;
      if (graph_.findValue(value.name) != value.id)
        add("value '" + value.name + "': not found by its name; expected names to be unique");
      if (value.role != ValueRole::kNodeOutput && value.producer)
        add("value '" + value.name + "': has a producer; expected none of an input, a constant or state");
      if (value.role != ValueRole::kNodeOutput || !value.producer) continue;
      const bool there = at(value.producer) < graph_.nodeCapacity() && graph_.alive(value.producer);
      if (!there)
        add("value '" + value.name + "': its producer was removed");
      else if (graph_.node(value.producer).output(static_cast<std::size_t>(value.outputIndex)) != value.id)
        add("value '" + value.name + "': no output of its producer " + graph_.node(value.producer).label());
    }
  }

  void ends() {
    for (const ValueId in : graph_.inputs())
      if (!known(in) || !graph_.alive(in)) add("graph input " + name(in) + " was removed");
    for (const ValueId out : graph_.outputs())
      if (!known(out) || !made_[at(out)] || !graph_.alive(out)) add("graph output " + name(out) + " is made by no node");
  }

  void stateUpdates() {
    std::unordered_set<ValueId> written;
    for (const StateUpdate& update : graph_.stateUpdates) {
      const std::string label = "state update of " + name(update.state);
      if (!known(update.state) || !graph_.alive(update.state)) {
        add(label + ": the state was removed");
        continue;
      }
      const Value& state = graph_.value(update.state);
      if (state.role != ValueRole::kInitializer && state.role != ValueRole::kState)
        add(label + ": it is no state; expected an initializer or a state value");
      if (!written.insert(update.state).second) add(label + ": written twice");
      if (!known(update.next) || !graph_.alive(update.next) || !made_[at(update.next)]) {
        add(label + ": its next contents " + name(update.next) + " are made by no node");
        continue;
      }
      const ValueType &type = state.type, &next = graph_.value(update.next).type;
      const bool types = type.dtype == DType::kUndefined || next.dtype == DType::kUndefined || type.dtype == next.dtype;
      const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt,
                 nextDims = next.shape ? knownDims(*next.shape) : std::nullopt;
      if (!types || (dims && nextDims && *dims != *nextDims))
        add(label + ": " + type.text() + ", its next contents are " + next.text());
    }
  }

  const Graph& graph_;
  std::vector<bool> made_;  // by value: there before the node at hand
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> Graph::verify() const { return Verifier(*this).run(); }

}  // namespace stepscope
