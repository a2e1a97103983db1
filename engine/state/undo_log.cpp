#include "engine/state/undo_log.h"

#include <algorithm>

#include "kernels/status.h"

namespace stepscope {

void UndoLog::record(int instruction, std::span<const std::span<std::byte>> memory, std::span<const Kept> kept) {
  if (!entries_.empty() && end() != instruction) clear();
  Entry entry{instruction, 0, {}};
  for (const std::span<std::byte> region : memory) {
    if (region.empty()) continue;
    const auto same = [&](const Kept& k) { return k.memory == region.data() && k.contents.bytes() == region.size(); };
    const auto it = std::find_if(kept.begin(), kept.end(), same);
    entry.regions.push_back({region.data(), region.size(), nullptr, it == kept.end() ? Tensor() : it->contents});
    if (it == kept.end()) entry.bytes += static_cast<std::int64_t>(region.size());
  }
  // Too large for the whole log: a barrier, before anything is copied.
  if (entry.bytes > limit_) return clear();
  while (!entries_.empty() && (bytes_ + entry.bytes > limit_ || entries_.size() >= kInstructions)) dropOldest();
  for (Region& region : entry.regions) {
    if (region.shared.valid()) continue;
    region.copy = std::make_unique_for_overwrite<std::byte[]>(region.bytes);
    copy(region.copy.get(), region.memory, region.bytes);
  }
  bytes_ += entry.bytes;
  entries_.push_back(std::move(entry));
}

// A device that cannot copy any more cannot be stepped through: the worker ends.
void UndoLog::copy(void* to, const void* from, std::size_t bytes) {
  SS_CHECK(device_->copy(to, from, static_cast<std::int64_t>(bytes), 0).has_value() && device_->synchronise().has_value());
}

void UndoLog::dropOldest() {
  bytes_ -= entries_.front().bytes;
  entries_.pop_front();
}

void UndoLog::clear() {
  entries_.clear();
  bytes_ = 0;
}

void UndoLog::undoTo(int instruction) {
  SS_CHECK(reaches(instruction, end()));
  while (!entries_.empty() && entries_.back().instruction >= instruction) {
    Entry& entry = entries_.back();
    for (const Region& region : entry.regions)
      copy(region.memory, region.shared.valid() ? region.shared.data() : region.copy.get(), region.bytes);
    bytes_ -= entry.bytes;
    entries_.pop_back();
  }
}

}  // namespace stepscope
