#include "engine/step/rank_collectives.h"

#include <fmt/format.h>

namespace stepscope {

Status RankCollectives::run(const Node& node, const KernelCall& call) {
  const CollectivePlace place{node.name, context_.state.counters.step};
  if (node.op == "AllReduce")
    return context_.ranks->allReduce(place, call.inputs, call.outputs, node.attrs.integer("average", 0) != 0);
  return unsupported(fmt::format("{}: no rank knows how to run it; expected AllReduce", node.label()));
}

}  // namespace stepscope
