#include <algorithm>
#include <numeric>

#include "engine/plan/plan.h"

namespace stepscope {
namespace {

struct Block {
  int buffer;
  std::int64_t bytes;  // rounded up
  int first, last;
  const std::vector<Predicate>* predicates;  // of the producer; null = always
  std::int64_t offset = 0;
};

// Blocks of the two branches of one If are never alive together.
bool alternatives(const Block& a, const Block& b) {
  if (!a.predicates || !b.predicates) return false;
  for (const Predicate& p : *a.predicates)
    for (const Predicate& q : *b.predicates)
      if (p.condition == q.condition && p.expected != q.expected) return true;
  return false;
}

bool overlap(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last && !alternatives(a, b); }

// First fit in the given order: the lowest gap between placed blocks that live at the same time. Returns the arena's size.
std::int64_t place(std::vector<Block>& blocks, const std::vector<std::size_t>& order) {
  std::int64_t size = 0;
  std::vector<const Block*> placed;  // by offset
  placed.reserve(blocks.size());
  for (const std::size_t index : order) {
    Block& block = blocks[index];
    std::int64_t best = -1, bestGap = INT64_MAX, end = 0;
    for (const Block* other : placed) {
      if (!overlap(block, *other)) continue;
      const std::int64_t gap = other->offset - end;
      if (gap >= block.bytes && gap < bestGap) {  // best fit among the gaps
        best = end;
        bestGap = gap;
      }
      end = std::max(end, other->offset + other->bytes);
    }
    block.offset = best >= 0 ? best : end;
    size = std::max(size, block.offset + block.bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), &block, [](const Block* a, const Block* b) { return a->offset < b->offset; });
    placed.insert(position, &block);
  }
  return size;
}

bool ownsArenaMemory(const Buffer& buffer) { return buffer.home == Home::kArena && buffer.shares < 0 && buffer.first >= 0; }

std::int64_t alignedBytes(const Buffer& buffer) { return (std::max<std::int64_t>(buffer.bytes, 1) + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

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
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (!ownsArenaMemory(buffer)) continue;
    const std::vector<Predicate>* predicates = nullptr;
    if (buffer.value && graph.value(buffer.value).producer) predicates = &graph.node(graph.value(buffer.value).producer).predicates;
    blocks.push_back({static_cast<int>(b), alignedBytes(buffer), buffer.first, buffer.last, predicates && !predicates->empty() ? predicates : nullptr});
  }
  measureLiveBytes(plan);

  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!reuse) {
    std::int64_t offset = 0;
    for (Block& block : blocks) {
      block.offset = offset;
      offset += block.bytes;
    }
    plan.arenaBytes = offset;
  } else {
    // Three orders of first fit; the smallest arena wins, the first one on ties, so the choice is the same on every run.
    const auto bySize = [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; };
    const auto byLife = [&](std::size_t a, std::size_t b) { return blocks[a].last - blocks[a].first > blocks[b].last - blocks[b].first; };
    const auto byArea = [&](std::size_t a, std::size_t b) {
      const auto area = [&](const Block& x) { return static_cast<double>(x.bytes) * (x.last - x.first + 1); };
      return area(blocks[a]) > area(blocks[b]);
    };
    std::vector<Block> best;
    std::int64_t bestSize = INT64_MAX;
    const auto attempt = [&](auto compare) {
      if (bestSize <= plan.lowerBoundBytes + plan.lowerBoundBytes / 100) return;
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(), compare);
      std::vector<Block> candidate = blocks;
      const std::int64_t size = place(candidate, order);
      if (size < bestSize) {
        bestSize = size;
        best = std::move(candidate);
      }
    };
    attempt(byLife);
    attempt(bySize);
    attempt(byArea);
    // While it pays: what sticks out above the bound is placed earlier. The number of rounds is bounded by the work that they are.
    constexpr std::size_t kWork = std::size_t{1} << 26;
    std::size_t rounds = std::min<std::size_t>(24, kWork / std::max<std::size_t>(1, blocks.size() * blocks.size()));
    for (std::vector<Block> last = best; rounds-- > 0 && bestSize > plan.lowerBoundBytes + plan.lowerBoundBytes / 100;) {
      std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return last[i].offset + last[i].bytes > plan.lowerBoundBytes; });
      last = blocks;
      const std::int64_t size = place(last, order);
      if (size < bestSize) {
        bestSize = size;
        best = last;
      }
    }
    blocks = std::move(best);
    plan.arenaBytes = blocks.empty() ? 0 : bestSize;
  }
  for (const Block& block : blocks) plan.buffers[static_cast<std::size_t>(block.buffer)].offset = block.offset;
  for (Buffer& buffer : plan.buffers)
    if (buffer.shares >= 0) {
      int root = buffer.shares;
      while (plan.buffers[static_cast<std::size_t>(root)].shares >= 0) root = plan.buffers[static_cast<std::size_t>(root)].shares;
      buffer.offset = plan.buffers[static_cast<std::size_t>(root)].offset;
    }
}

}  // namespace stepscope
