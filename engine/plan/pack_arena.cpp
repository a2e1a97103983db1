#include <algorithm>

#include "engine/plan/place_blocks.h"
#include "engine/plan/plan.h"

namespace stepscope {
namespace {

bool ownsArenaMemory(const Buffer& buffer) { return buffer.home == Home::kArena && buffer.shares < 0 && buffer.first >= 0; }

std::int64_t alignedBytes(const Buffer& buffer) {
  return (std::max<std::int64_t>(buffer.bytes, 1) + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

}  // namespace

void measureLiveBytes(ExecutionPlan& plan) {
  const std::size_t count = plan.instructions.size();
  std::vector<std::int64_t> delta(count + 2, 0);
  for (const Buffer& buffer : plan.buffers) {
    if (!ownsArenaMemory(buffer)) continue;
    delta[static_cast<std::size_t>(buffer.first)] += alignedBytes(buffer);
    delta[static_cast<std::size_t>(buffer.last) + 1] -= alignedBytes(buffer);
  }
  std::int64_t live = 0;
  plan.lowerBoundBytes = 0;
  for (std::size_t i = 0; i <= count; ++i) {
    live += delta[i];
    if (live > plan.lowerBoundBytes) {
      plan.lowerBoundBytes = live;
      plan.peakInstruction = static_cast<int>(std::min(i, count == 0 ? 0 : count - 1));
    }
  }
}

void packArena(ExecutionPlan& plan, const Graph& graph, bool reuse) {
  std::vector<Block> blocks;
  std::vector<Buffer*> owners;
  for (Buffer& buffer : plan.buffers) {
    if (!ownsArenaMemory(buffer)) continue;
    const std::vector<Predicate>* predicates = nullptr;
    if (buffer.value && graph.value(buffer.value).producer)
      predicates = &graph.node(graph.value(buffer.value).producer).predicates;
    owners.push_back(&buffer);
    blocks.push_back(
        {alignedBytes(buffer), buffer.first, buffer.last, predicates && !predicates->empty() ? predicates : nullptr, 0});
  }
  measureLiveBytes(plan);
  if (reuse) {
    plan.arenaBytes = placeBlocks(blocks);
  } else {
    plan.arenaBytes = 0;
    for (Block& block : blocks) {
      block.offset = plan.arenaBytes;
      plan.arenaBytes += block.bytes;
    }
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) owners[b]->offset = blocks[b].offset;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].shares >= 0)
      plan.buffers[b].offset = plan.buffers[static_cast<std::size_t>(plan.root(static_cast<int>(b)))].offset;
}

}  // namespace stepscope
