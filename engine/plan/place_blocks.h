// Offsets for blocks of memory whose lifetimes are known: what packArena() decides with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

struct Block {
  std::int64_t bytes = 0;                              // a multiple of the alignment
  int first = 0, last = 0;                             // instructions, both included
  const std::vector<Predicate>* predicates = nullptr;  // conditions of If under which it is used; null = always
  std::int64_t offset = 0;                             // the answer, in bytes
};

// Largest sum of bytes that are alive at one instruction; no arena without alternatives of If can be smaller.
std::int64_t liveBytes(const std::vector<Block>& blocks);

// Up to this many blocks, each is compared with each. Above, blocks of like lifetimes are placed together.
inline constexpr std::size_t kMostComparedBlocks = 4096;

// Gives every block an offset such that no two that live at the same time overlap; blocks of the two branches of one If may.
// Returns the size of the arena. The same input gives the same offsets. O(n log n) above kMostComparedBlocks.
std::int64_t placeBlocks(std::vector<Block>& blocks);

}  // namespace stepscope
