#include "engine/plan/place_blocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace stepscope {
namespace {

// Blocks of the two branches of one If are never alive together.
bool alternatives(const Block& a, const Block& b) {
  if (!a.predicates || !b.predicates) return false;
  for (const Predicate& p : *a.predicates)
    for (const Predicate& q : *b.predicates)
      if (p.condition == q.condition && p.expected != q.expected) return true;
  return false;
}

bool overlap(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last && !alternatives(a, b); }

// How much may be tried. Counts are of pairs of blocks that are compared, and of placements.
struct Effort {
  std::size_t pairs = std::size_t{1} << 26;
  std::int64_t fewest = 10, most = 250;
  std::size_t compared = kMostComparedBlocks;  // more blocks than these are placed in groups
};

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
// is the same on every run. No order is good for all steps: the order by last use is good where the peak lies between
// forward and backward, the order by size where there are few large values.
class Packer {
 public:
  Packer(const std::vector<Block>& blocks, std::int64_t bound, const Effort& effort)
      : blocks_(blocks),
        bound_(bound),
        enough_(bound + bound / 100),
        best_(blocks),
        attempts_(
            std::clamp(static_cast<std::int64_t>(effort.pairs / std::max<std::size_t>(1, blocks.size() * blocks.size())),
                       effort.fewest, effort.most)) {}

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

  // A block that ends above the lower bound is placed earlier in the next round.
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

// Many blocks are placed in groups. Time is cut into kParts parts with as many beginnings and ends of lifetimes in each.
//  - Blocks that live within one part are placed among themselves, by the same rule, and form one block of that part.
//  - Blocks that begin in one part and end in another are all alive where the parts meet, so they lie next to each other as
//    one block, which wastes memory only within its first and its last part.
// What is left is one block per pair of parts.
constexpr std::size_t kParts = 56;

constexpr std::int64_t kFewestInGroups = 2, kMostInGroups = 24;
constexpr std::size_t kComparedInGroups = 512;

std::int64_t placeWith(std::vector<Block>& blocks, const Effort& effort);

// The parts by their last instructions.
std::vector<int> partsOf(const std::vector<Block>& blocks) {
  std::vector<int> events;
  events.reserve(2 * blocks.size());
  for (const Block& block : blocks) {
    events.push_back(block.first);
    events.push_back(block.last);
  }
  std::sort(events.begin(), events.end());
  std::vector<int> ends;
  for (std::size_t part = 1; part < kParts; ++part) {
    const int end = events[part * events.size() / kParts];
    if (ends.empty() || end > ends.back()) ends.push_back(end);
  }
  return ends;
}

struct Group {
  std::vector<std::size_t> members;
  Block block;
};

using Conditions = std::vector<std::pair<std::int32_t, bool>>;

Conditions conditionsOf(const Block& block, bool distinguish) {
  Conditions conditions;
  if (block.predicates && distinguish)
    for (const Predicate& p : *block.predicates) conditions.emplace_back(p.condition.index, p.expected);
  return conditions;
}

// Without `distinguish`, the branches of If are taken to run always: fewer groups, and no memory shared between them.
std::vector<Group> groupsOf(const std::vector<Block>& blocks, bool distinguish) {
  const std::vector<int> ends = partsOf(blocks);
  const auto partOf = [&](int instruction) {
    return std::lower_bound(ends.begin(), ends.end(), instruction) - ends.begin();
  };
  std::map<std::tuple<std::ptrdiff_t, std::ptrdiff_t, Conditions>, std::size_t> places;
  std::vector<Group> groups;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    const auto [place, fresh] =
        places.try_emplace({partOf(block.first), partOf(block.last), conditionsOf(block, distinguish)}, groups.size());
    if (fresh) groups.push_back({{}, {0, block.first, block.last, distinguish ? block.predicates : nullptr, 0}});
    Group& group = groups[place->second];
    group.members.push_back(b);
    group.block.first = std::min(group.block.first, block.first);
    group.block.last = std::max(group.block.last, block.last);
  }
  return groups;
}

bool aliveTogether(const std::vector<Block>& blocks, const std::vector<std::size_t>& members) {
  int latestFirst = INT32_MIN, earliestLast = INT32_MAX;
  for (const std::size_t m : members) {
    latestFirst = std::max(latestFirst, blocks[m].first);
    earliestLast = std::min(earliestLast, blocks[m].last);
  }
  return latestFirst <= earliestLast;
}

// Offsets within the group; fills its size.
void placeGroup(std::vector<Block>& blocks, Group& group, const Effort& effort) {
  if (aliveTogether(blocks, group.members) || group.members.size() == blocks.size()) {
    for (const std::size_t m : group.members) {
      blocks[m].offset = group.block.bytes;
      group.block.bytes += blocks[m].bytes;
    }
    return;
  }
  std::vector<Block> inner;
  inner.reserve(group.members.size());
  for (const std::size_t m : group.members) inner.push_back(blocks[m]);
  group.block.bytes = placeWith(inner, effort);
  for (std::size_t k = 0; k < inner.size(); ++k) blocks[group.members[k]].offset = inner[k].offset;
}

std::int64_t placeMany(std::vector<Block>& blocks, const Effort& effort) {
  std::vector<Group> groups = groupsOf(blocks, true);
  if (groups.size() > kMostComparedBlocks) groups = groupsOf(blocks, false);
  std::vector<Block> outer;
  outer.reserve(groups.size());
  for (Group& group : groups) {
    const std::size_t share = effort.pairs * group.members.size() / (2 * blocks.size());
    placeGroup(blocks, group, {share, kFewestInGroups, kMostInGroups, kComparedInGroups});
    outer.push_back(group.block);
  }
  Packer packer(outer, liveBytes(outer), {effort.pairs / 2, kFewestInGroups, effort.most, effort.compared});
  const std::int64_t size = packer.run();
  outer = packer.take();
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::size_t m : groups[g].members) blocks[m].offset += outer[g].offset;
  return size;
}

std::int64_t placeWith(std::vector<Block>& blocks, const Effort& effort) {
  if (blocks.empty()) return 0;
  if (blocks.size() > effort.compared) return placeMany(blocks, effort);
  Packer packer(blocks, liveBytes(blocks), effort);
  const std::int64_t size = packer.run();
  blocks = packer.take();
  return size;
}

}  // namespace

std::int64_t liveBytes(const std::vector<Block>& blocks) {
  int end = 0;
  for (const Block& block : blocks) end = std::max(end, block.last);
  std::vector<std::int64_t> delta(static_cast<std::size_t>(end) + 2, 0);
  for (const Block& block : blocks) {
    delta[static_cast<std::size_t>(block.first)] += block.bytes;
    delta[static_cast<std::size_t>(block.last) + 1] -= block.bytes;
  }
  std::int64_t live = 0, most = 0;
  for (const std::int64_t d : delta) most = std::max(most, live += d);
  return most;
}

std::int64_t placeBlocks(std::vector<Block>& blocks) { return placeWith(blocks, {}); }

}  // namespace stepscope
