// What the emulator knows of an element of memory that a launch writes: whether it has a value, and who touched it last.
#pragma once

#include <cstdint>
#include <vector>

namespace stepscope::emulated {

// Who touches an element, and how far its barriers have come. Two accesses of different threads are ordered when they are of
// one block with a barrier of the block between them, or of one warp with a barrier of the warp between them.
struct Toucher {
  std::uint64_t thread = 0;  // 1 + number of the thread in the grid; 0 = nobody
  std::uint32_t barriers = 0, warpBarriers = 0;
};

struct Cell {
  Toucher writer, reader;
  bool hasValue = false;
  bool atomic = false;       // the write was an atomic one
  bool severalRead = false;  // threads other than `reader` have read since the same barrier
};

// Cells of one operand or shared array.
using Shadow = std::vector<Cell>;

}  // namespace stepscope::emulated
