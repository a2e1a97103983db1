#include "engine/lab/buffer_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <span>

#include "engine/exec/touched.h"

namespace stepscope {
namespace {

// The whole pages inside; they are zero when they are touched again.
void giveBackPages(std::span<std::byte> memory) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()), end = begin + memory.size();
  const std::uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (last > first) static_cast<void>(madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED));
}

}  // namespace

Result<std::vector<std::int64_t>> bufferBytes(SideStep& side, const Batch& batch) {
  const Executor& executor = side.stepper().executor();
  const SharedBlocks<Buffer>& buffers = executor.plan().buffers;
  std::vector<std::int64_t> bytes(buffers.size(), -1);
  std::multimap<int, int> begin, end;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const int buffer = static_cast<int>(b);
    if (buffers[b].first < 0 || executor.arenaMemory(buffer).empty()) continue;
    begin.emplace(buffers[b].first, buffer);
    // What is kept until the end of the step is used beyond the last instruction.
    end.emplace(std::min(buffers[b].last, static_cast<int>(executor.plan().instructions.size()) - 1), buffer);
  }
  const auto before = [&](int i) {
    for (auto [it, last] = begin.equal_range(i); it != last; ++it) giveBackPages(executor.arenaMemory(it->second));
    return true;
  };
  const auto after = [&](int i) -> Status {
    for (auto [it, last] = end.equal_range(i); it != last; ++it) {
      const std::span<std::byte> memory = executor.arenaMemory(it->second);
      bytes[static_cast<std::size_t>(it->second)] = residentBytes(memory.data(), static_cast<std::int64_t>(memory.size()));
    }
    return {};
  };
  SS_TRY(side.run(batch, after, before));
  return bytes;
}

}  // namespace stepscope
