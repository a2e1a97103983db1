#include "engine/build/order_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

// An order of all nodes in which those of `chain` follow each other; nothing where there is none.
std::optional<std::vector<NodeId>> orderWith(const Graph& graph, const std::vector<NodeId>& chain) {
  enum class Mark : std::uint8_t { kNone, kOpen, kDone };
  std::vector<Mark> marks(graph.nodeCapacity(), Mark::kNone);
  std::unordered_map<NodeId, NodeId> before;
  for (std::size_t i = 1; i < chain.size(); ++i) before[chain[i]] = chain[i - 1];
  const std::unordered_set<NodeId> apart(chain.begin(), chain.end());
  std::vector<NodeId> order, open;
  const auto mark = [&](NodeId id) -> Mark& { return marks[static_cast<std::size_t>(id.index)]; };
  bool circle = false;
  const auto need = [&](NodeId id) {
    if (!id || mark(id) == Mark::kDone) return;
    circle = circle || mark(id) == Mark::kOpen;
    open.push_back(id);
  };
  const auto put = [&](NodeId wanted) {
    open.push_back(wanted);
    while (!open.empty() && !circle) {
      const NodeId id = open.back();
      if (mark(id) != Mark::kNone) {  // all that it needs is there
        open.pop_back();
        if (mark(id) == Mark::kOpen) order.push_back(id);
        mark(id) = Mark::kDone;
        continue;
      }
      mark(id) = Mark::kOpen;
      const Node& node = graph.node(id);
      for (const ValueId input : node.inputs)
        if (input) need(graph.value(input).producer);
      for (const Predicate& predicate : node.predicates) need(graph.value(predicate.condition).producer);
      if (const auto earlier = before.find(id); earlier != before.end()) need(earlier->second);
    }
  };
  for (const NodeId id : graph.order())
    if (!apart.contains(id)) put(id);
  for (const NodeId id : chain) put(id);
  if (circle) return std::nullopt;
  return order;
}

}  // namespace

ModelCollectives modelCollectives(const Graph& imported, const Graph& graph, const OpRegistry& ops) {
  std::unordered_map<NodeId, std::size_t> places;
  for (const NodeId id : imported.order()) places.emplace(id, places.size());
  ModelCollectives found;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const OpDef* op = ops.find(node);
    const auto place = places.find(node.provenance.imported);
    if (!op || op->sideEffect != SideEffect::kCollective || place == places.end()) continue;
    (node.phase == Phase::kForward ? found.forward : found.backward).push_back({id, place->second});
  }
  return found;
}

Status checkRanks(const Graph& graph, int ranks) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.domain != kInternalDomain) continue;
    const bool rooted = node.op == "Broadcast" || node.op == "Reduce";
    for (const char* name : {"root", "from", "to"}) {
      if (rooted != (std::string_view(name) == "root") || (!rooted && node.op != "Send" && node.op != "Recv")) continue;
      const std::int64_t rank = node.attrs.integer(name, 0);
      if (rank >= 0 && rank < ranks) continue;
      return invalid(
          fmt::format("{}: attribute {} is rank {}; expected 0 to {}, as this run has {} rank{}; hint: `stepscope "
                      "train` with --distributed runs several",
                      node.label(), name, rank, ranks - 1, ranks, ranks == 1 ? "" : "s"));
    }
  }
  return {};
}

bool tellRanks(Graph& graph, int rank, int ranks) {
  bool any = false;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if (node.domain != kInternalDomain || (node.op != "AllGatherRows" && node.op != "ReduceScatterRows")) continue;
    Attributes& attrs = graph.mutableNode(id).attrs;
    attrs.set("rank", std::int64_t{rank});
    attrs.set("ranks", std::int64_t{ranks});
    graph.logChange(id);
    any = true;
  }
  return any;
}

Status checkShares(const Graph& graph, int ranks) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.domain != kInternalDomain || (node.op != "AllToAll" && node.op != "ReduceScatterRows")) continue;
    const ValueType& type = graph.value(node.inputs[0]).type;
    const auto extent = type.shape && !type.shape->empty() ? type.shape->front().asKnown() : std::nullopt;
    if (extent && *extent % ranks != 0)
      return invalid(fmt::format("{}: first axis of {}; expected a multiple of {}, the number of ranks, which share it out",
                                 node.label(), type.text(), ranks));
  }
  return {};
}

Status orderCollectives(Graph& graph, std::vector<OrderedCollective> forward, std::vector<OrderedCollective> backward,
                        bool ahead) {
  const auto chainOf = [&] {
    std::vector<NodeId> chain;
    for (const auto* phase : {&forward, &backward})
      for (const OrderedCollective& collective : *phase) chain.push_back(collective.node);
    return chain;
  };
  std::ranges::stable_sort(forward, [](const OrderedCollective& a, const OrderedCollective& b) {
    return a.use != b.use ? a.use < b.use : a.gathers && !b.gathers;
  });
  std::ranges::stable_sort(backward, [](const OrderedCollective& a, const OrderedCollective& b) {
    return a.use != b.use ? a.use > b.use : a.gathers && !b.gathers;
  });
  if (ahead) {
    std::vector<OrderedCollective> order, held;  // those that send wait for one more that gathers
    for (const OrderedCollective& collective : backward) {
      (collective.gathers ? order : held).push_back(collective);
      if (!collective.gathers) continue;
      order.insert(order.end(), held.begin(), held.end());
      held.clear();
    }
    order.insert(order.end(), held.begin(), held.end());
    backward = std::move(order);
  }
  std::optional<std::vector<NodeId>> order = orderWith(graph, chainOf());
  if (!order) {
    std::ranges::stable_partition(backward, &OrderedCollective::gathers);
    order = orderWith(graph, chainOf());
  }
  if (!order)
    return unsupported(
        "collectives of the step: passes have joined nodes so that they cannot run in the order of the file; expected that "
        "order, which all ranks have");
  graph.setOrder(std::move(*order));
  return {};
}

}  // namespace stepscope
