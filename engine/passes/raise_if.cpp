#include "engine/passes/raise_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

bool isSelect(const Node& node) { return node.domain == kInternalDomain && node.op == "Select"; }

// The Ifs of one depth of predicates.
class Raising {
 public:
  explicit Raising(Graph& graph) : graph_(graph) {}

  // Selects that lower_if made of one If, which all of them name as their source.
  Status raise(const std::vector<NodeId>& selects) {
    const Node first = graph_.node(selects.front());
    const ValueId condition = first.input(0);
    std::vector<NodeId> inside;
    std::map<std::string, std::shared_ptr<const Graph>> branches;
    for (const bool expected : {true, false}) {
      std::vector<Predicate> predicates = first.predicates;
      predicates.push_back({condition, expected});
      std::vector<ValueId> results;
      for (const NodeId select : selects) results.push_back(graph_.node(select).input(expected ? 1 : 2));
      const std::vector<NodeId> nodes = madeUnder(predicates, results);
      branches[expected ? "then_branch" : "else_branch"] = std::make_shared<const Graph>(branchOf(nodes, results, expected));
      inside.insert(inside.end(), nodes.begin(), nodes.end());
    }
    std::vector<std::string> names;
    for (const NodeId select : selects) names.push_back(graph_.value(graph_.node(select).output(0)).name + "_if");
    constexpr std::string_view kSuffix = "/Select";
    const bool lowered = first.name.ends_with(kSuffix);
    const std::string name = lowered ? first.name.substr(0, first.name.size() - kSuffix.size()) : first.name;
    const NodeId made = graph_.addNode(name, "", "If", {condition}, names);
    Node& node = graph_.mutableNode(made);
    node.sinceVersion = first.sinceVersion;
    node.provenance = first.provenance;
    node.predicates = first.predicates;
    node.subgraphs = std::move(branches);
    std::unordered_map<ValueId, ValueId> replaced;
    std::vector<std::pair<ValueId, std::string>> renamed;
    for (std::size_t i = 0; i < selects.size(); ++i) {
      const ValueId was = graph_.node(selects[i]).output(0), now = graph_.node(made).output(i);
      graph_.mutableValue(now).type = graph_.value(was).type;
      replaced[was] = now;
      renamed.emplace_back(now, graph_.value(was).name);
    }
    graph_.replaceAllUses(replaced);
    graph_.removeNodes(selects);
    std::ranges::reverse(inside);  // readers before what they read
    graph_.removeNodes(inside);
    for (auto& [value, name] : renamed) graph_.renameValue(value, std::move(name));
    return graph_.sortTopologically();
  }

 private:
  // In the order of the graph.
  std::vector<NodeId> madeUnder(const std::vector<Predicate>& predicates, const std::vector<ValueId>& results) const {
    std::set<NodeId> found;
    std::vector<ValueId> open = results;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const NodeId made = id ? graph_.value(id).producer : NodeId{};
      if (!made || graph_.node(made).predicates != predicates || !found.insert(made).second) continue;
      open.insert(open.end(), graph_.node(made).inputs.begin(), graph_.node(made).inputs.end());
      addCaptures(graph_.node(made), open);
    }
    std::vector<NodeId> nodes;
    std::ranges::copy_if(graph_.order(), std::back_inserter(nodes), [&](NodeId id) { return found.contains(id); });
    return nodes;
  }

  // What the bodies of a node read of the graph around it.
  void addCaptures(const Node& node, std::vector<ValueId>& values) const {
    for (const auto& [name, body] : node.subgraphs)
      for (const ValueId captured : body->inputs())
        if (const ValueId outer = graph_.findValue(body->value(captured).name)) values.push_back(outer);
  }

  Graph branchOf(const std::vector<NodeId>& nodes, const std::vector<ValueId>& results, bool expected) const {
    Graph branch;
    branch.name = expected ? "then_branch" : "else_branch";
    branch.opsets = graph_.opsets;
    std::unordered_map<ValueId, ValueId> copies;
    const auto known = [&](ValueId id) -> ValueId {
      if (!id) return {};
      if (const auto it = copies.find(id); it != copies.end()) return it->second;
      const ValueId captured = branch.addValue(graph_.value(id).name, graph_.value(id).type, ValueRole::kInput);
      branch.mutableInputs().push_back(captured);
      return copies[id] = captured;
    };
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      std::vector<ValueId> inputs, captured;
      std::ranges::transform(node.inputs, std::back_inserter(inputs), known);
      addCaptures(node, captured);
      for (const ValueId value : captured) known(value);
      std::vector<std::string> names;
      for (const ValueId out : node.outputs) names.push_back(out ? graph_.value(out).name : std::string());
      const NodeId copy = branch.addNode(node.name, node.domain, node.op, std::move(inputs), std::move(names), node.attrs);
      Node& made = branch.mutableNode(copy);
      made.sinceVersion = node.sinceVersion;
      made.subgraphs = node.subgraphs;
      made.provenance.modulePath = node.provenance.modulePath;
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        if (node.outputs[o]) {
          copies[node.outputs[o]] = made.outputs[o];
          branch.mutableValue(made.outputs[o]).type = graph_.value(node.outputs[o]).type;
        }
    }
    // An output of a branch is made in it, and once.
    std::set<ValueId> given;
    for (const ValueId result : results) {
      ValueId out = known(result);
      if (branch.value(out).role != ValueRole::kNodeOutput || !given.insert(out).second) {
        const std::string name = fmt::format("{}/{}", graph_.value(result).name, branch.outputs().size());
        const NodeId same = branch.addNode(name, "", "Identity", {out}, {name});
        branch.mutableNode(same).sinceVersion =
            graph_.order().empty() ? 0 : graph_.node(graph_.order().front()).sinceVersion;
        out = branch.node(same).output(0);
        branch.mutableValue(out).type = graph_.value(result).type;
      }
      branch.mutableOutputs().push_back(out);
    }
    return branch;
  }

  Graph& graph_;
};

}  // namespace

Status raiseIf(Graph& graph) {
  while (true) {
    // The deepest Selects, by the If that they were.
    std::size_t depth = 0;
    std::map<std::pair<NodeId, ValueId>, std::vector<NodeId>> ifs;
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (!isSelect(node)) continue;
      if (node.predicates.size() > depth) ifs.clear();
      depth = std::max(depth, node.predicates.size());
      if (node.predicates.size() < depth) continue;
      const NodeId source = node.provenance.sources.empty() ? id : node.provenance.sources.front();
      ifs[{source, node.input(0)}].push_back(id);
    }
    if (ifs.empty()) break;
    SS_TRY(Raising(graph).raise(ifs.begin()->second));
  }
  for (const NodeId id : graph.order())
    if (const Node& node = graph.node(id); !node.predicates.empty())
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: it runs under a condition, and no output of an If needs it; expected one that does",
                              node.label()));
  return {};
}

}  // namespace stepscope
