#include "engine/passes/lower_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "engine/passes/captures.h"

namespace stepscope {
namespace {

class Lowering {
 public:
  Lowering(Graph& graph, PassContext& context, bool inferred) : graph_(graph), context_(context), inferred_(inferred) {}

  Status run() {
    std::vector<NodeId> order;
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& node = graph_.node(id);
      if (node.domain.empty() && node.op == "If" && !waits(node))
        SS_TRY(lower(id, order));
      else
        order.push_back(id);
    }
    if (context_.result.matches > 0) graph_.setOrder(std::move(order));
    return {};
  }

 private:
  // Whether the branches deal with sequences or optionals: which of them runs often follows from ranks, and the other one
  // would not fit. Before anything is inferred such an If waits; afterwards, until what other passes of the round wrote is.
  bool waits(const Node& node) const {
    if (inferred_) return changed_;
    return std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                       [&](const auto& branch) { return hasSequences(*branch.second); });
  }
  bool hasSequences(const Graph& branch) const {
    return std::any_of(branch.order().begin(), branch.order().end(), [&](NodeId id) {
      const Node& node = branch.node(id);
      const OpDef* op = context_.inference.ops().find(node);
      return (op != nullptr && op->sequences) || std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                                                             [&](const auto& inner) { return hasSequences(*inner.second); });
    });
  }

  Status lower(NodeId id, std::vector<NodeId>& order) {
    const Node& node = graph_.node(id);
    const auto thenBranch = node.subgraphs.find("then_branch"), elseBranch = node.subgraphs.find("else_branch");
    if (thenBranch == node.subgraphs.end() || elseBranch == node.subgraphs.end())
      return invalid(fmt::format("{}: a branch is missing; expected then_branch and else_branch", node.label()));
    const ValueId condition = node.input(0);
    if (!condition) return invalid(fmt::format("{}: no condition", node.label()));
    if (const auto known = knownCondition(condition))
      return take(id, *known ? *thenBranch->second : *elseBranch->second, order);
    std::vector<std::vector<ValueId>> results(2);
    for (int b = 0; b < 2; ++b) {
      const Graph& branch = *(b == 0 ? thenBranch : elseBranch)->second;
      std::vector<Predicate> predicates = node.predicates;
      predicates.push_back({condition, b == 0});
      SS_ASSIGN(results[static_cast<std::size_t>(b)], copyBranch(branch, id, predicates, order));
    }
    if (results[0].size() != results[1].size() || results[0].size() < node.outputs.size())
      return invalid(fmt::format("{}: branches give {} and {} outputs; expected {} each", node.label(), results[0].size(),
                                 results[1].size(), node.outputs.size()));
    return hand(id, order, [&](std::size_t o, const std::string& name) {
      return graph_.addNode(graph_.node(id).name + "/Select", std::string(kInternalDomain), "Select",
                            {condition, results[0][o], results[1][o]}, {name + "_selected"});
    });
  }

  // Puts what `make` adds for each output that is read in the place of the If, under the output's name, and removes it.
  template <typename Make>
  Status hand(NodeId id, std::vector<NodeId>& order, Make&& make) {
    std::unordered_map<ValueId, ValueId> replacements;
    std::vector<std::pair<ValueId, std::string>> names;
    const std::vector<ValueId> outputs = graph_.node(id).outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o]) continue;
      const std::string name = graph_.value(outputs[o]).name;
      const NodeId made = make(o, name);
      adopt(made, id, graph_.node(id).predicates);
      order.push_back(made);
      replacements[outputs[o]] = graph_.node(made).output(0);
      names.emplace_back(graph_.node(made).output(0), name);
    }
    graph_.replaceAllUses(replacements);
    // The order under construction holds nodes the graph's own order may not list in place; uses were replaced in all of
    // them.
    graph_.removeNode(id);
    for (auto& [value, name] : names) graph_.renameValue(value, std::move(name));
    context_.match();
    return {};
  }

  std::optional<bool> knownCondition(ValueId condition) const {
    if (!inferred_) return std::nullopt;
    const auto known = context_.inference.integers(condition);
    if (!known || known->size() != 1) return std::nullopt;
    return known->front() != 0;
  }

  // The condition is known: the branch that runs stands in the place of the If.
  Status take(NodeId id, const Graph& branch, std::vector<NodeId>& order) {
    SS_ASSIGN(const std::vector<ValueId> results, copyBranch(branch, id, graph_.node(id).predicates, order));
    const std::vector<ValueId> outputs = graph_.node(id).outputs;
    if (results.size() < outputs.size())
      return invalid(fmt::format("{}: a branch gives {} outputs; expected {}", graph_.node(id).label(), results.size(),
                                 outputs.size()));
    return hand(id, order, [&](std::size_t o, const std::string& name) {
      return graph_.addNode(graph_.node(id).name + "/Identity", "", "Identity", {results[o]}, {name + "_taken"});
    });
  }

  void adopt(NodeId made, NodeId from, std::vector<Predicate> predicates) {
    Node& node = graph_.mutableNode(made);
    const Node& source = graph_.node(from);
    node.sinceVersion = source.sinceVersion;
    node.provenance = source.provenance;
    node.provenance.sources = {from};
    node.provenance.pass = graph_.pass();
    node.predicates = std::move(predicates);
  }

  Result<std::vector<ValueId>> copyBranch(const Graph& branch, NodeId owner, const std::vector<Predicate>& predicates,
                                          std::vector<NodeId>& order) {
    std::unordered_map<ValueId, ValueId> map;
    for (const ValueId captured : branch.inputs()) {
      const ValueId outer = lookup(branch.value(captured).name);
      if (!outer)
        return invalid(fmt::format("{}: branch reads '{}'; expected a value of the enclosing graph",
                                   graph_.node(owner).label(), branch.value(captured).name));
      map[captured] = outer;
    }
    const std::size_t scope = scopes_.size();
    scopes_.emplace_back();
    const auto mapped = [&](ValueId id) -> ValueId {
      if (!id) return {};
      if (const auto it = map.find(id); it != map.end()) return it->second;
      const Value& value = branch.value(id);
      if (value.role == ValueRole::kNodeOutput) return {};
      const ValueId copy = graph_.addValue(value.name, value.type, value.role);
      graph_.mutableValue(copy).data = value.data;
      scopes_[scope][value.name] = copy;
      return map[id] = copy;
    };
    for (const NodeId inner : branch.order()) {
      const Node& source = branch.node(inner);
      std::vector<ValueId> inputs;
      for (const ValueId in : source.inputs) inputs.push_back(mapped(in));
      std::vector<std::string> outputs;
      for (const ValueId out : source.outputs) outputs.push_back(out ? branch.value(out).name.str() : "");
      const NodeId copy =
          graph_.addNode(source.name, source.domain, source.op, std::move(inputs), std::move(outputs), source.attrs);
      Node& node = graph_.mutableNode(copy);
      const Node& holder = graph_.node(owner);
      node.subgraphs = source.subgraphs;
      node.sinceVersion = source.sinceVersion;
      node.provenance = source.provenance;
      node.provenance.sources = {owner};
      node.provenance.imported = copy;
      node.provenance.pass = graph_.pass();
      if (node.provenance.modulePath.empty()) {
        node.provenance.modulePath = holder.provenance.modulePath;
        node.provenance.modulePathInferred = true;
      }
      node.predicates = predicates;
      for (std::size_t o = 0; o < source.outputs.size(); ++o)
        if (source.outputs[o]) {
          map[source.outputs[o]] = node.outputs[o];
          graph_.mutableValue(node.outputs[o]).type = branch.value(source.outputs[o]).type;
          scopes_[scope][branch.value(source.outputs[o]).name] = node.outputs[o];
        }
      if (node.domain.empty() && node.op == "If") {
        SS_TRY(lower(copy, order));
      } else {
        // A loop is unrolled later, when what it captures is known by the names of this graph alone.
        renameCaptures(node, [this](const std::string& name) {
          const ValueId now = lookup(name);
          return now ? graph_.value(now).name : name;
        });
        order.push_back(copy);
      }
      // A nested If was replaced by Selects under the same names.
      for (std::size_t o = 0; o < source.outputs.size(); ++o)
        if (source.outputs[o] && !graph_.alive(map[source.outputs[o]])) {
          const ValueId now = graph_.findValue(graph_.value(map[source.outputs[o]]).name);
          map[source.outputs[o]] = now;
          scopes_[scope][branch.value(source.outputs[o]).name] = now;
        }
    }
    std::vector<ValueId> results;
    for (const ValueId out : branch.outputs()) {
      ValueId result = mapped(out);
      if (!result) return invalid(fmt::format("{}: a branch output is made by no node", graph_.node(owner).label()));
      results.push_back(result);
    }
    scopes_.pop_back();
    return results;
  }

  // Names inside branches shadow nothing in valid models; inner scopes are searched first all the same.
  ValueId lookup(const std::string& name) const {
    for (std::size_t i = scopes_.size(); i-- > 0;)
      if (const auto it = scopes_[i].find(name); it != scopes_[i].end()) return it->second;
    return graph_.findValue(name);
  }

  Graph& graph_;
  PassContext& context_;
  const bool inferred_;
  const bool changed_ = !context_.inference.isCurrent();
  std::vector<std::unordered_map<std::string, ValueId>> scopes_;
};

}  // namespace

Status lowerIf(Graph& graph, PassContext& context) { return Lowering(graph, context, false).run(); }

Status lowerRemainingIf(Graph& graph, PassContext& context) { return Lowering(graph, context, true).run(); }

}  // namespace stepscope
