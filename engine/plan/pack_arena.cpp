#include <algorithm>

#include "engine/plan/order_streams.h"
#include "engine/plan/place_blocks.h"
#include "engine/plan/plan.h"

namespace stepscope {
namespace {

bool ownsArenaMemory(const Buffer& buffer, Space space) {
  return buffer.home == Home::kArena && buffer.shares < 0 && buffer.first >= 0 && buffer.space == space;
}

std::int64_t alignedBytes(const Buffer& buffer) {
  return (std::max<std::int64_t>(buffer.bytes, 1) + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// Offsets in the arena of one space; its size.
std::int64_t pack(ExecutionPlan& plan, const Graph& graph, bool reuse, Space space) {
  std::vector<Block> blocks;
  std::vector<std::size_t> owners;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (!ownsArenaMemory(buffer, space)) continue;
    const std::vector<Predicate>* predicates = nullptr;
    if (buffer.value && graph.value(buffer.value).producer)
      predicates = &graph.node(graph.value(buffer.value).producer).predicates.get();
    owners.push_back(b);
    // Nothing is allocated while commits run: what lives on there does so from the first one.
    blocks.push_back({alignedBytes(buffer), buffer.first, std::min(buffer.last, plan.firstCommit),
                      predicates && !predicates->empty() ? predicates : nullptr, 0});
  }
  std::int64_t size = 0;
  if (reuse) {
    size = placeBlocks(blocks);
  } else {
    for (Block& block : blocks) {
      block.offset = size;
      size += block.bytes;
    }
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) plan.offsets[owners[b]] = blocks[b].offset;
  return size;
}

}  // namespace

void measureLiveBytes(ExecutionPlan& plan) {
  const std::size_t count = plan.instructions.size();
  std::vector<std::int64_t> delta(count + 2, 0);
  for (const Buffer& buffer : plan.buffers) {
    if (!ownsArenaMemory(buffer, plan.space)) continue;
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
  extendLifetimes(plan);
  measureLiveBytes(plan);
  plan.offsets.assign(plan.buffers.size(), 0);
  plan.arenaBytes = pack(plan, graph, reuse, plan.space);
  plan.hostArenaBytes = plan.space == Space::kHost ? 0 : pack(plan, graph, reuse, Space::kHost);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].shares >= 0)
      plan.offsets[b] = plan.offsets[static_cast<std::size_t>(plan.root(static_cast<int>(b)))];
}

}  // namespace stepscope
