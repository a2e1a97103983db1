// SPDX-License-Identifier: GPL-3.0-or-later
// The memory map of a plan: one box per buffer, x = instructions, y = bytes. Persistent memory lies at the bottom, sorted by
// class; the arena above it. Immutable; pure arithmetic on a checked plan, any thread.
//
// A buffer that goes on in another one's memory (in place) begins where its predecessor is cut; a view adds no box, it
// lengthens the life of what it looks at. Offsets and sizes of a plan from outside are clamped to 0 … 2^50.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "views/common/snapshots.h"

namespace stepscope {

struct MemoryBox {
  int buffer = -1;
  int bufferClass = 0;
  int first = 0, end = 0;          // instructions [first, end)
  std::int64_t low = 0, high = 0;  // bytes [low, high)
  bool inPlace = false;            // takes over the memory of another buffer
};

struct MemoryBand {  // one class of persistent memory
  int bufferClass = 0;
  int buffers = 0;
  std::int64_t low = 0, high = 0;
};

class MemoryModel {
 public:
  static std::shared_ptr<const MemoryModel> make(std::shared_ptr<const PlanSnapshot> plan);

  const PlanSnapshot& plan() const { return *plan_; }
  const std::vector<MemoryBox>& boxes() const { return boxes_; }  // by first instruction
  const std::vector<MemoryBand>& bands() const { return bands_; }
  const std::vector<std::int64_t>& live() const { return live_; }  // by instruction: bytes alive, persistent ones included
  int instructions() const { return plan_->size(); }
  std::int64_t top() const { return top_; }  // highest address
  std::int64_t persistent() const { return persistent_; }
  int boxOf(int buffer) const;  // -1: a view, or none
  // Bytes per class alive at an instruction, largest first.
  std::vector<std::pair<int, std::int64_t>> ownersAt(int instruction) const;

 private:
  std::shared_ptr<const PlanSnapshot> plan_;
  std::vector<MemoryBox> boxes_;
  std::vector<MemoryBand> bands_;
  std::vector<std::int64_t> live_;
  std::vector<int> boxOf_;
  std::int64_t top_ = 1, persistent_ = 0;
};

}  // namespace stepscope
