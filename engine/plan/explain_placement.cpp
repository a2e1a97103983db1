#include "engine/plan/explain_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "engine/plan/place_blocks.h"
#include "kernels/index.h"

namespace stepscope {
namespace {

struct Placed {
  int buffer = -1, first = 0, last = 0;
  std::int64_t begin = 0, end = 0;  // bytes
};

std::vector<Placed> placedIn(const ExecutionPlan& plan, Space space) {
  std::vector<Placed> placed;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.home != Home::kArena || buffer.shares >= 0 || buffer.first < 0 || buffer.space != space || buffer.bytes == 0)
      continue;
    const std::int64_t bytes = (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    placed.push_back({static_cast<int>(b), buffer.first, buffer.last, plan.offsets[b], plan.offsets[b] + bytes});
  }
  return placed;
}

// Whose memory a buffer takes, found by walking through the step: the arena as a map from address to who was there last.
class Owners {
 public:
  explicit Owners(const ExecutionPlan& plan) : plan_(plan) {}

  std::string taken(const Placed& by) {
    split(by.begin);
    split(by.end);
    std::vector<std::pair<std::int64_t, int>> before;  // bytes, buffer
    for (auto it = owned_.lower_bound(by.begin); it != owned_.end() && it->first < by.end; it = owned_.erase(it)) {
      const auto known =
          std::find_if(before.begin(), before.end(), [&](const auto& b) { return b.second == it->second.buffer; });
      const std::int64_t bytes = it->second.end - it->first;
      if (known == before.end())
        before.emplace_back(bytes, it->second.buffer);
      else
        known->first += bytes;
    }
    owned_[by.begin] = {by.end, by.buffer};
    if (before.empty()) return "takes memory that nothing used before";
    const auto most =
        std::max_element(before.begin(), before.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const Buffer& owner = plan_.buffers[at(most->second)];
    // Buffers of the two branches of one If may lie on each other while both live.
    std::string text = owner.last < plan_.buffers[at(by.buffer)].first
                           ? fmt::format("takes the memory of '{}', dead since instruction {}", owner.name, owner.last)
                           : fmt::format("shares the memory of '{}', of the other branch of an If", owner.name);
    if (before.size() > 1) text += fmt::format(", and of {} more", before.size() - 1);
    return text;
  }

 private:
  struct Part {
    std::int64_t end = 0;
    int buffer = -1;
  };

  void split(std::int64_t address) {
    auto it = owned_.upper_bound(address);
    if (it == owned_.begin()) return;
    --it;
    if (it->first == address || it->second.end <= address) return;
    const Part rest{it->second.end, it->second.buffer};
    it->second.end = address;
    owned_[address] = rest;
  }

  const ExecutionPlan& plan_;
  std::map<std::int64_t, Part> owned_;
};

// `byAddress`: everything that is placed. Gaps between what lives at the same time, and below the end of the arena.
std::string choiceOf(const Placed& of, const std::vector<Placed>& byAddress, std::int64_t arena) {
  const std::int64_t bytes = of.end - of.begin;
  std::int64_t end = 0, own = -1, smallest = INT64_MAX;
  int fitting = 0, lower = 0;
  const auto gap = [&](std::int64_t from, std::int64_t to) {
    if (to - from < bytes) return;
    ++fitting;
    smallest = std::min(smallest, to - from);
    if (from <= of.begin && of.end <= to)
      own = to - from;
    else if (to <= of.begin)
      ++lower;
  };
  for (const Placed& other : byAddress) {
    if (other.buffer == of.buffer || other.last < of.first || of.last < other.first) continue;
    gap(end, other.begin);
    end = std::max(end, other.end);
  }
  gap(end, arena);
  if (own < 0) return {};  // alternatives of an If overlap it
  const std::string left = own == bytes ? "it fits exactly" : fmt::format("{} bytes are left of it", own - bytes);
  if (fitting == 1)
    return fmt::format("the only gap that is free from {} to {} and large enough: {}", of.first, of.last, left);
  return fmt::format("{} gaps are free from {} to {} and large enough, it lies in the {}: {}", fitting, of.first, of.last,
                     own == smallest ? "smallest"
                     : lower == 0    ? "lowest"
                                     : "one that gave the smallest arena with all others",
                     left);
}

}  // namespace

std::vector<std::string> explainPlacement(const ExecutionPlan& plan) {
  std::vector<std::string> texts(plan.buffers.size());
  for (const Space space : {Space::kHost, Space::kDevice}) {
    std::vector<Placed> byTime = placedIn(plan, space);
    std::vector<Placed> byAddress = byTime;
    std::stable_sort(byTime.begin(), byTime.end(), [](const Placed& a, const Placed& b) { return a.first < b.first; });
    std::stable_sort(byAddress.begin(), byAddress.end(), [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    const std::int64_t arena = space == plan.space ? plan.arenaBytes : plan.hostArenaBytes;
    Owners owners(plan);
    for (const Placed& placed : byTime) {
      std::string& text = texts[at(placed.buffer)];
      text = owners.taken(placed);
      if (byTime.size() > kMostComparedBlocks) continue;
      if (const std::string choice = choiceOf(placed, byAddress, arena); !choice.empty()) text += "; " + choice;
    }
  }
  return texts;
}

}  // namespace stepscope
