#include "engine/build/blocked_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "kernels/kernel.h"

namespace stepscope {
namespace {

constexpr std::size_t kNodesShown = 20;
constexpr std::size_t kWayShown = 6;

// Where a node comes from, as far as the exporter told.
std::string originText(const Node& node) {
  std::string text;
  if (!node.provenance.modulePath.empty()) text += fmt::format("; module {}", node.provenance.modulePath.view());
  if (!node.provenance.sourceFile.empty())
    text += fmt::format("; {}:{}", node.provenance.sourceFile.view(), node.provenance.sourceLine);
  return text;
}

std::string wayText(const Graph& graph, const std::vector<NodeId>& way, ValueId root) {
  if (way.empty()) return root ? fmt::format("; it makes '{}'", graph.value(root).name) : "";
  std::string text = fmt::format("; to {}: ", root ? "'" + graph.value(root).name + "'" : "the loss");
  for (std::size_t k = 0; k < way.size() && k < kWayShown; ++k) text += (k ? " → " : "") + graph.node(way[k]).op;
  if (way.size() > kWayShown) text += fmt::format(" … ({} nodes)", way.size());
  return text;
}

// Ways from nodes to the roots along any edge, of unknown types too.
class Ways {
 public:
  Ways(const Graph& graph, const std::vector<ValueId>& roots)
      : graph_(graph), next_(graph.valueCapacity()), root_(graph.valueCapacity()) {
    for (const ValueId root : roots)
      if (root) root_[at(root)] = root;
    for (std::size_t k = graph.order().size(); k-- > 0;) {
      const Node& node = graph.node(graph.order()[k]);
      const ValueId root = rootOf(node);
      if (!root) continue;
      const auto reach = [&](ValueId in) {
        if (!in || std::find(roots.begin(), roots.end(), in) != roots.end()) return;
        next_[at(in)] = node.id;
        root_[at(in)] = root;
      };
      for (const ValueId in : node.inputs) reach(in);
      for (const Predicate& predicate : node.predicates) reach(predicate.condition);
    }
  }

  // The root that needs the node, or invalid.
  ValueId rootOf(const Node& node) const {
    for (const ValueId out : node.outputs)
      if (out && root_[at(out)]) return root_[at(out)];
    return {};
  }

  // Nodes after this one, up to the root.
  std::vector<NodeId> from(const Node& node) const {
    std::vector<NodeId> way;
    for (NodeId step = nextOf(node); step && way.size() < graph_.order().size(); step = nextOf(graph_.node(step)))
      way.push_back(step);
    return way;
  }

 private:
  NodeId nextOf(const Node& node) const {
    for (const ValueId out : node.outputs)
      if (out && root_[at(out)]) return next_[at(out)];
    return {};
  }

  const Graph& graph_;
  std::vector<NodeId> next_;   // per value: the first reader that leads to a root; invalid for a root
  std::vector<ValueId> root_;  // per value
};

std::string more(std::size_t count) {
  return count > kNodesShown ? fmt::format("\n  and {} more", count - kNodesShown) : "";
}

}  // namespace

std::string unknownOperators(const Graph& graph, const std::vector<ValueId>& roots, const OpRegistry& ops) {
  const Ways ways(graph, roots);
  std::size_t count = 0, python = 0;
  std::string text;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const ValueId root = ways.rootOf(node);
    if (!root || ops.find(node) != nullptr) continue;
    python += node.domain == "stepscope.python" ? 1 : 0;
    if (++count > kNodesShown) continue;
    text += fmt::format("\n  {}: {}{}{}", node.label(),
                        node.domain.empty() ? "not an operator of this build"
                                            : fmt::format("domain '{}' has no such operator in this build", node.domain),
                        originText(node), wayText(graph, ways.from(node), root));
  }
  if (count == 0) return text;
  return fmt::format(
      "operators: {} node{} on the way to the loss cannot be computed; expected known operators{}{}"
      "; hint: {}",
      count, count == 1 ? "" : "s", text, more(count),
      python == count
          ? "the option --plugin python_host lets a Python that has torch compute them (plugins/python/README.md)"
          : "export with other operators, the operator as a model-local function, or a plugin that has it (--plugin FILE)");
}

std::string missingRules(const Graph& graph, const std::vector<MissingRule>& missing) {
  if (missing.empty()) return {};
  std::string text =
      fmt::format("gradient: {} node{} on the way to the loss cannot be differentiated; expected a rule for each",
                  missing.size(), missing.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < missing.size() && i < kNodesShown; ++i) {
    const Node& node = graph.node(missing[i].node);
    text += fmt::format("\n  {}: {}{}{}", node.label(), missing[i].reason, originText(node),
                        wayText(graph, missing[i].pathToLoss, {}));
  }
  return text + more(missing.size()) + "; hint: freeze the parameters before it (--freeze), or export with other operators";
}

namespace {

// ONNX Runtime saves layouts of the machine at hand with its highest level of optimisation.
std::string_view otherOperators(const Graph& graph) {
  const auto blocked = [&](NodeId id) { return graph.node(id).domain == "com.microsoft.nchwc"; };
  return std::any_of(graph.order().begin(), graph.order().end(), blocked)
             ? "save the optimised model at level extended: com.microsoft.nchwc holds for the machine that saved it"
             : "export with other operators";
}

}  // namespace

std::string missingKernels(const Graph& graph, const Operators& operators) {
  const Ways ways(graph, graph.outputs());
  std::string text;
  std::size_t count = 0;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const OpDef* op = operators.ops.find(node);
    if (op && (op->view || op->sequences || operators.kernels.has(kReferenceDevice, node.domain, node.op))) continue;
    if (++count > kNodesShown) continue;
    text += fmt::format("\n  {}: {} '{}{}{}'{}{}", node.label(), op ? "no kernel for" : "unknown operator", node.domain,
                        node.domain.empty() ? "" : ".", node.op, originText(node),
                        wayText(graph, ways.from(node), ways.rootOf(node)));
  }
  if (count == 0) return {};
  return fmt::format("kernels: {} node{} cannot run; expected a kernel for each{}{}; hint: {}", count, count == 1 ? "" : "s",
                     text, more(count), otherOperators(graph));
}

std::string lostGradient(const Graph& graph, const CutEdge& cut) {
  constexpr std::size_t kNamed = 3;
  const Node& node = graph.node(cut.node);
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, cut.trained.size()); ++i)
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", graph.value(cut.trained[i]).name);
  if (cut.trained.size() > kNamed) names += fmt::format(" and {} more", cut.trained.size() - kNamed);
  const bool one = cut.trained.size() == 1;
  return fmt::format(
      "{} '{}': no gradient goes through input {} '{}' ({}); trained {} {} there and {} that part of {} gradient", node.op,
      node.name, cut.input, graph.value(node.input(cut.input)).name, cut.reason, names, one ? "leads" : "lead",
      one ? "misses" : "miss", one ? "its" : "their");
}

}  // namespace stepscope
