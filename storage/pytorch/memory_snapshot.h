// A snapshot of torch.cuda.memory._dump_snapshot: what was allocated when most was, by the history that
// _record_memory_history kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "storage/error.h"

namespace stepscope::storage {

struct Allocation {
  std::int64_t bytes = 0;  // as the allocator rounded them
  std::vector<std::pair<std::string, int>>
      python;         // file name without folders and line of each Python frame, innermost first
  std::string where;  // "model.py:12", of the innermost frame called `forward`, else of the innermost of Python; empty: none
};

struct MemorySnapshot {
  std::int64_t events = 0;       // of the device with most
  std::int64_t peakBytes = 0;    // largest sum of what was allocated
  std::int64_t beforeBytes = 0;  // of it: allocated before the history begins
  std::vector<Allocation> live;  // the rest of it, in order of allocation
};

// Errors: those of parsePickle; kForeign (no snapshot; no history in it), kNotFound, kIo, kLimitExceeded.
Result<MemorySnapshot> readMemorySnapshot(const std::filesystem::path& path);

}  // namespace stepscope::storage
