#include "engine/passes/pair_messages.h"

#include <fmt/format.h>

#include <compare>
#include <deque>
#include <map>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

struct Ends {
  std::int64_t from = -1, to = -1, tag = 0;
  friend auto operator<=>(const Ends&, const Ends&) = default;
};

Ends endsOf(const Node& node) {
  return {node.attrs.integer("from", -1), node.attrs.integer("to", -1), node.attrs.integer("tag", 0)};
}

bool isMessage(const Node& node, const char* op) { return node.domain == kInternalDomain && node.op == op; }

tl::unexpected<Error> alone(const Node& node, const char* other) {
  const Ends ends = endsOf(node);
  return invalid(
      fmt::format("{}: no {} from rank {} to rank {} with tag {}; expected one for each {}, as all ranks run this "
                  "graph",
                  node.label(), other, ends.from, ends.to, ends.tag, node.op));
}

Status checkPair(const Node& send, const Node& receive) {
  if (endsOf(send) != endsOf(receive)) return alone(receive, "Send");
  if (send.predicates == receive.predicates) return {};
  return invalid(
      fmt::format("{}: it stands in another branch than its {}; expected both in one", receive.label(), send.label()));
}

// The nodes of the graph that are not paired, in its order.
struct Messages {
  std::map<Ends, std::deque<NodeId>> sends;
  std::vector<NodeId> receives;
};

Result<Messages> unpaired(const Graph& graph) {
  Messages all;
  std::vector<NodeId> paired;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (isMessage(node, "Send")) all.sends[endsOf(node)].push_back(id);
    if (isMessage(node, "Recv")) (node.input(0) ? paired : all.receives).push_back(id);
  }
  for (const NodeId id : paired) {
    const Node& receive = graph.node(id);
    const NodeId producer = graph.value(receive.inputs[0]).producer;
    if (!producer || !isMessage(graph.node(producer), "Send")) return alone(receive, "Send");
    SS_TRY(checkPair(graph.node(producer), receive));
    if (std::erase(all.sends[endsOf(receive)], producer) == 0)
      return invalid(
          fmt::format("{}: two Recv have its message; expected one Recv for each Send", graph.node(producer).label()));
  }
  return all;
}

Status pair(Graph& graph, PassContext& context, bool all) {
  SS_ASSIGN(Messages left, unpaired(graph));
  for (const NodeId id : left.receives) {
    std::deque<NodeId>& sends = left.sends[endsOf(graph.node(id))];
    if (sends.empty()) {
      if (all) return alone(graph.node(id), "Send");
      continue;
    }
    SS_TRY(checkPair(graph.node(sends.front()), graph.node(id)));
    graph.mutableNode(id).inputs = {graph.node(sends.front()).output(0)};
    graph.logChange(id);
    sends.pop_front();
    context.match();
  }
  for (const auto& [ends, sends] : left.sends)
    if (all && !sends.empty()) return alone(graph.node(sends.front()), "Recv");
  if (context.result.matches == 0) return {};
  if (Status sorted = graph.sortTopologically(); !sorted)
    return invalid(fmt::format("messages between ranks: {}; expected that nothing is sent which needs its own Recv",
                               sorted.error().message));
  return {};
}

}  // namespace

Status pairMessages(Graph& graph, PassContext& context) { return pair(graph, context, false); }

Status pairRemainingMessages(Graph& graph, PassContext& context) {
  SS_TRY(pair(graph, context, true));
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    if (!isMessage(graph.node(id), "Recv") || !graph.node(id).attrs.has("dtype")) continue;
    graph.mutableNode(id).attrs.erase("dtype");
    graph.logChange(id);
  }
  return {};
}

}  // namespace stepscope
