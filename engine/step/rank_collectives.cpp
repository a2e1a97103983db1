#include "engine/step/rank_collectives.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope {

Status RankCollectives::run(const Node& node, const KernelCall& call) {
  return exchange(node, placeOf(node), call.inputs, call.outputs);
}

CollectivePlace RankCollectives::placeOf(const Node& node) const {
  // A step whose numbers are not finite is taken back before its update and replayed, unless that would keep what parameters
  // are gathered to (takesBack() of stepper.cpp).
  const bool replayed = context_.numbers.any() && node.phase != Phase::kOptimizer && node.op != "AllGather";
  return {node.name, context_.state.counters.step, replayed};
}

Status RankCollectives::exchange(const Node& node, const CollectivePlace& place, std::span<const TensorView> inputs,
                                 std::span<TensorView> outputs) {
  Ranks& ranks = *context_.ranks;
  const bool average = node.attrs.integer("average", 0) != 0;
  if (node.op == "AllReduce") return ranks.allReduce(place, inputs, outputs, average);
  if (node.attrs.has("ranks")) {
    const std::int64_t here = node.attrs.integer("ranks", 0), rank = node.attrs.integer("rank", -1);
    if (here != ranks.size() || rank != ranks.rank())
      return invalid(fmt::format("{}: made for rank {} of {}; expected rank {} of {}", node.label(), rank, here,
                                 ranks.rank(), ranks.size()));
  }
  if (node.op == "ReduceScatter" || node.op == "ReduceScatterRows")
    return ranks.reduceScatter(place, inputs, outputs, average);
  if (node.op == "AllGatherRows") return ranks.allGather(place, inputs, outputs);
  if (node.op == "AllGather") {
    const std::size_t before = node.attrs.has("extents") ? 0 : inputs.size() / 2;
    return ranks.allGather(place, inputs.subspan(before), outputs);
  }
  const auto attribute = [&](const char* name, int fallback) {
    return static_cast<int>(node.attrs.integer(name, fallback));
  };
  if (node.op == "Broadcast") return ranks.broadcast(place, inputs[0], outputs[0], attribute("root", 0));
  if (node.op == "Reduce") return ranks.reduce(place, inputs[0], outputs[0], attribute("root", 0));
  if (node.op == "AllToAll") return ranks.allToAll(place, inputs[0], outputs[0]);
  if (node.op == "Recv") return ranks.message(place, inputs[0], outputs[0], attribute("from", -1), attribute("to", -1));
  if (node.op == "Send") {  // where its result may not be the memory of its operand
    return ranks.copyOver(place, inputs[0], outputs[0]);
  }
  return unsupported(
      fmt::format("{}: no rank knows how to run it; expected AllReduce, ReduceScatter, AllGather, rows of them, Broadcast, "
                  "Reduce, AllToAll, Send or Recv",
                  node.label()));
}

bool RankCollectives::beside() const { return context_.ranks->thread() != nullptr; }

void RankCollectives::begin(const Node& node, const KernelCall& call) {
  begun_.push_back({&node, call.outputs});
  context_.ranks->thread()->post([this, &node, place = placeOf(node), inputs = call.inputs, outputs = call.outputs] {
    return exchange(node, place, inputs, outputs);
  });
}

bool RankCollectives::hasBegun(const Node& node) const {
  return std::ranges::any_of(begun_, [&](const Begun& begun) { return begun.node == &node; });
}

Status RankCollectives::wait(const Node& node) {
  SS_CHECK(!begun_.empty() && begun_.front().node == &node);
  const std::int64_t begin = rankClockNs();
  Status ended = context_.ranks->thread()->take();
  context_.ranks->ranBeside(node.name, rankClockNs() - begin);
  begun_.pop_front();
  return ended;
}

Status RankCollectives::putOnDevice(const Node& node, const KernelCall& call) {
  CollectivePlace place = placeOf(node);
  place.stream = call.stream;
  return exchange(node, place, call.inputs, call.outputs);
}

Status RankCollectives::ended() { return context_.ranks->communicator().deviceEnded(); }

void RankCollectives::settle() {
  if (!begun_.empty()) context_.ranks->thread()->settle();
}

void RankCollectives::leave() {
  for (const Begun& begun : begun_)
    if (context_.ranks->thread()->take()) SS_CHECK(context_.ranks->keep({begun.node->name}, begun.outputs).has_value());
  begun_.clear();
}

}  // namespace stepscope
