#include "engine/step/rank_collectives.h"

#include <fmt/format.h>

namespace stepscope {

Status RankCollectives::run(const Node& node, const KernelCall& call) {
  Ranks& ranks = *context_.ranks;
  // A step whose numbers are not finite is taken back before its update and replayed, unless that would keep what parameters
  // are gathered to (takesBack() of stepper.cpp).
  const bool replayed = context_.numbers.any() && node.phase != Phase::kOptimizer && node.op != "AllGather";
  const CollectivePlace place{node.name, context_.state.counters.step, replayed};
  const bool average = node.attrs.integer("average", 0) != 0;
  if (node.op == "AllReduce") return ranks.allReduce(place, call.inputs, call.outputs, average);
  if (node.op == "ReduceScatter" || node.op == "AllGather") {
    const std::int64_t here = node.attrs.integer("ranks", 0), rank = node.attrs.integer("rank", -1);
    if (here != ranks.size() || rank != ranks.rank())
      return invalid(fmt::format("{}: made for rank {} of {}; expected rank {} of {}", node.label(), rank, here,
                                 ranks.rank(), ranks.size()));
  }
  if (node.op == "ReduceScatter") return ranks.reduceScatter(place, call.inputs, call.outputs, average);
  if (node.op == "AllGather") {
    const std::size_t before = node.attrs.has("extents") ? 0 : call.inputs.size() / 2;
    return ranks.allGather(place, call.inputs.subspan(before), call.outputs);
  }
  return unsupported(
      fmt::format("{}: no rank knows how to run it; expected AllReduce, ReduceScatter or AllGather", node.label()));
}

}  // namespace stepscope
