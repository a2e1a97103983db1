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

enum class Fit { kBest, kFirst };  // which of the gaps that are large enough: the smallest, or the lowest

// In the given order, a gap between placed blocks that live at the same time, or above them all. Returns the arena's size.
std::int64_t place(std::vector<Block>& blocks, const std::vector<std::size_t>& order, Fit fit) {
  std::int64_t size = 0;
  std::vector<const Block*> placed;  // by offset
  placed.reserve(blocks.size());
  for (const std::size_t index : order) {
    Block& block = blocks[index];
    std::int64_t best = -1, bestGap = INT64_MAX, end = 0;
    for (const Block* other : placed) {
      if (!overlap(block, *other)) continue;
      const std::int64_t gap = other->offset - end;
      if (gap >= block.bytes && gap < bestGap) {
        best = end;
        bestGap = gap;
        if (fit == Fit::kFirst) break;
      }
      end = std::max(end, other->offset + other->bytes);
    }
    block.offset = best >= 0 ? best : end;
    size = std::max(size, block.offset + block.bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), &block,
                                           [](const Block* a, const Block* b) { return a->offset < b->offset; });
    placed.insert(position, &block);
  }
  return size;
}

// Places blocks in several orders, then improves each result; the smallest arena wins, the first one on ties, so the choice
// is the same on every run. No order is good for all steps: dying last first packs a step whose peak lies between forward
// and backward, size one of few large values.
class Packer {
 public:
  Packer(const std::vector<Block>& blocks, std::int64_t bound)
      : blocks_(blocks),
        bound_(bound),
        enough_(bound + bound / 100),
        best_(blocks),
        attempts_(static_cast<std::int64_t>(
            std::clamp(kWork / std::max<std::size_t>(1, blocks.size() * blocks.size()), kFewest, kMost))) {}

  std::int64_t run() {
    const auto life = [&](std::size_t i) { return static_cast<std::int64_t>(blocks_[i].last) - blocks_[i].first; };
    const auto area = [&](std::size_t i) {
      return static_cast<double>(blocks_[i].bytes) * static_cast<double>(life(i) + 1);
    };
    for (const Fit fit : {Fit::kBest, Fit::kFirst}) {
      begin(fit, [&](std::size_t a, std::size_t b) { return life(a) > life(b); });
      begin(fit, [&](std::size_t a, std::size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
      begin(fit, [&](std::size_t a, std::size_t b) { return area(a) > area(b); });
      begin(fit, [&](std::size_t a, std::size_t b) { return blocks_[a].last > blocks_[b].last; });
      begin(fit, [&](std::size_t a, std::size_t b) { return blocks_[a].first < blocks_[b].first; });
    }
    std::stable_sort(starts_.begin(), starts_.end(), [](const Start& a, const Start& b) { return a.size < b.size; });
    for (Start& start : starts_) improve(start);
    return size_;
  }
  std::vector<Block> take() { return std::move(best_); }

 private:
  static constexpr std::size_t kWork = std::size_t{1} << 26, kFewest = 10,
                               kMost = 250;  // pairs of blocks looked at; placements
  static constexpr int kRounds = 24;
  struct Start {
    std::int64_t size;
    Fit fit;
    std::vector<std::size_t> order;
    std::vector<Block> placed;
  };

  bool done() const { return size_ <= enough_ || attempts_ <= 0; }

  void attempt(Start& start) {
    --attempts_;
    start.placed = blocks_;
    start.size = place(start.placed, start.order, start.fit);
    if (start.size >= size_) return;
    size_ = start.size;
    best_ = start.placed;
  }

  template <typename Compare>
  void begin(Fit fit, Compare compare) {
    if (done()) return;
    Start start{0, fit, std::vector<std::size_t>(blocks_.size()), {}};
    std::iota(start.order.begin(), start.order.end(), std::size_t{0});
    std::stable_sort(start.order.begin(), start.order.end(), compare);
    attempt(start);
    starts_.push_back(std::move(start));
  }

  // What sticks out above the bound is placed earlier.
  void improve(Start& start) {
    for (int round = 0; round < kRounds && !done(); ++round) {
      std::stable_partition(start.order.begin(), start.order.end(),
                            [&](std::size_t i) { return start.placed[i].offset + start.placed[i].bytes > bound_; });
      attempt(start);
    }
  }

  const std::vector<Block>& blocks_;
  std::int64_t bound_, enough_;
  std::vector<Block> best_;
  std::int64_t attempts_, size_ = INT64_MAX;
  std::vector<Start> starts_;
};

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
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (!ownsArenaMemory(buffer)) continue;
    const std::vector<Predicate>* predicates = nullptr;
    if (buffer.value && graph.value(buffer.value).producer)
      predicates = &graph.node(graph.value(buffer.value).producer).predicates;
    blocks.push_back({static_cast<int>(b), alignedBytes(buffer), buffer.first, buffer.last,
                      predicates && !predicates->empty() ? predicates : nullptr});
  }
  measureLiveBytes(plan);

  if (!reuse) {
    std::int64_t offset = 0;
    for (Block& block : blocks) {
      block.offset = offset;
      offset += block.bytes;
    }
    plan.arenaBytes = offset;
  } else {
    Packer packer(blocks, plan.lowerBoundBytes);
    plan.arenaBytes = blocks.empty() ? 0 : packer.run();
    blocks = packer.take();
  }
  for (const Block& block : blocks) plan.buffers[static_cast<std::size_t>(block.buffer)].offset = block.offset;
  for (Buffer& buffer : plan.buffers)
    if (buffer.shares >= 0) {
      int root = buffer.shares;
      while (plan.buffers[static_cast<std::size_t>(root)].shares >= 0)
        root = plan.buffers[static_cast<std::size_t>(root)].shares;
      buffer.offset = plan.buffers[static_cast<std::size_t>(root)].offset;
    }
}

}  // namespace stepscope
