#include "engine/passes/group_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

struct Kind {
  std::string_view op, together;
  std::size_t inputs, outputs;  // of each parameter; the inputs behind them are shared
};
constexpr Kind kKinds[] = {{"AdamUpdate", "AdamUpdates", 4, 3}, {"SgdUpdate", "SgdUpdates", 3, 2}};
constexpr std::size_t kShared = 3;

// A copy in a low type stands behind the other results (pass keep_low_weights).
std::size_t resultsOf(const Kind& kind, const Node& node) {
  return kind.outputs + (node.attrs.integer("copies", 0) != 0 ? 1 : 0);
}

struct Group {
  const Kind* kind;
  std::vector<NodeId> members;
};

const Kind* kindOf(const Node& node) {
  if (node.domain != kInternalDomain) return nullptr;
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.op == node.op; });
  return kind == std::end(kKinds) ? nullptr : kind;
}

bool together(const Graph& graph, const Kind& kind, const Node& a, const Node& b) {
  if (a.op != b.op || !(a.attrs == b.attrs) || a.predicates != b.predicates || a.phase != b.phase) return false;
  const auto dtype = [&](ValueId id) { return id ? graph.value(id).type.dtype : DType::kUndefined; };
  for (std::size_t i = 0; i < kind.inputs; ++i)
    if (dtype(a.input(i)) != dtype(b.input(i))) return false;
  for (std::size_t i = kind.inputs; i < kind.inputs + kShared; ++i)
    if (a.input(i) != b.input(i)) return false;
  return true;
}

// The part of both paths that ends with a dot before, or is the whole of one.
std::string commonModule(std::string_view a, std::string_view b) {
  const auto parts = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const std::string common(a.begin(), parts.first);
  const auto ends = [&](std::string_view path, auto at) { return at == path.end() || *at == '.'; };
  if (ends(a, parts.first) && ends(b, parts.second)) return common;
  const auto dot = common.rfind('.');
  return dot == std::string::npos ? "" : common.substr(0, dot);
}

// One node at the end, where all gradients are there, in place of the group's.
Status join(Graph& graph, const Group& group, const Cancel& cancel) {
  const Kind& kind = *group.kind;
  const Node& first = graph.node(group.members.front());
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < kShared; ++i) inputs.push_back(first.input(kind.inputs + i));
  std::string module(first.provenance.modulePath);
  for (const NodeId id : group.members) {
    const Node& node = graph.node(id);
    for (std::size_t i = 0; i < kind.inputs; ++i) inputs.push_back(node.input(i));
    module = commonModule(module, node.provenance.modulePath);
  }
  // "fc1.bias/adamw" names the optimizer behind the parameter.
  const auto slash = first.name.rfind('/');
  const NodeId made =
      graph.addNode("small parameters" + (slash == std::string::npos ? "" : first.name.substr(slash)),
                    std::string(kInternalDomain), std::string(kind.together), std::move(inputs), {}, first.attrs);
  const std::size_t results = resultsOf(kind, graph.node(group.members.front()));
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    SS_TRY(cancel.check("group_updates"));
    for (std::size_t o = 0; o < results; ++o)
      if (const ValueId output = graph.node(group.members[i]).output(o)) graph.inheritOutput(output, made, i * results + o);
  }
  Node& node = graph.mutableNode(made);
  node.outputs.resize(group.members.size() * results);
  node.sinceVersion = first.sinceVersion;
  node.phase = first.phase;
  node.predicates = first.predicates;
  node.provenance.modulePath = InternedText(module);
  node.provenance.sources = group.members;
  node.provenance.pass = graph.pass();
  graph.removeNodes(group.members);
  return {};
}

}  // namespace

Status groupUpdates(Graph& graph, PassContext& context) {
  std::vector<Group> groups;
  for (const NodeId id : graph.order()) {
    SS_TRY(context.cancel.check("group_updates"));
    const Node& node = graph.node(id);
    const Kind* kind = kindOf(node);
    if (!kind) continue;
    const auto& shape = graph.value(node.input(0)).type.shape;
    const auto dims = shape ? knownDims(*shape) : std::nullopt;
    if (!dims) {
      context.miss(id, "the extents of the parameter are not known");
      continue;
    }
    const std::int64_t elements = elementCount(*dims);
    if (elements == 0) continue;
    if (elements > kGroupedElements) {
      context.miss(id, fmt::format("{} elements fill the threads alone; expected at most {}", elements, kGroupedElements));
      continue;
    }
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return together(graph, *kind, graph.node(g.members.front()), node);
    });
    if (group == groups.end())
      groups.push_back({kind, {id}});
    else
      group->members.push_back(id);
  }
  for (const Group& group : groups) {
    if (group.members.size() < 2) {
      context.miss(group.members.front(),
                   "no other update of a small parameter has its attributes, types and learning rate");
      continue;
    }
    SS_TRY(join(graph, group, context.cancel));
    context.match();
    context.note(fmt::format("{} of {} parameters", group.kind->together, group.members.size()));
  }
  // What reads the result of an update stood behind its own: the rounding of a parameter that is kept in a low type.
  return context.result.matches > 0 ? graph.sortTopologically() : Status();
}

}  // namespace stepscope
