// What the last instructions of a stepped micro step wrote over, so that a short way back needs no replay.
//
// One entry per instruction, in order and without gaps: [first(), end()). An entry holds the memory that the instruction was
// about to write, workspace included: a dead value stays readable until its memory is written, so all of it counts. The log
// keeps at most kInstructions entries and kBytes bytes of copies and drops the oldest. What an entry cannot hold is a
// barrier: the log is empty after it, and the session replays from the start of the step instead. The addresses must stay
// valid while the log is not empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device.h"

namespace stepscope {

class UndoLog {
 public:
  // Memory whose contents somebody has copied just now, for another reason.
  struct Kept {
    const void* memory = nullptr;
    Tensor contents;
  };

  static constexpr int kInstructions = 64;
  static constexpr std::int64_t kBytes = std::int64_t{256} << 20;

  explicit UndoLog(std::int64_t bytes = kBytes) : limit_(bytes) {}

  // Whose memory is recorded from here on; the log must be empty.
  void setDevice(Device& device) { device_ = &device; }

  // Called before `instruction` writes `memory`, of the device or of the host. Regions that `kept` holds the contents of
  // already are not copied again.
  void record(int instruction, std::span<const std::span<std::byte>> memory, std::span<const Kept> kept);
  void clear();

  bool reaches(int instruction, int position) const {
    return !entries_.empty() && end() == position && first() <= instruction;
  }
  int first() const { return entries_.empty() ? 0 : entries_.front().instruction; }
  int end() const { return entries_.empty() ? 0 : entries_.back().instruction + 1; }
  std::int64_t bytes() const { return bytes_; }

  // Puts back what instructions [instruction, end()) wrote over, the newest first. Needs reaches(instruction, end()).
  void undoTo(int instruction);

 private:
  struct Region {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> copy;  // null when `shared` holds the contents
    Tensor shared;
  };
  struct Entry {
    int instruction = 0;
    std::int64_t bytes = 0;
    std::vector<Region> regions;
  };
  void dropOldest();

  void copy(void* to, const void* from, std::size_t bytes);

  Device* device_ = &cpuDevice();
  std::int64_t limit_ = kBytes, bytes_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace stepscope
