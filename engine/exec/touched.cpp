#include "engine/exec/touched.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace stepscope {

std::int64_t residentBytes(const void* data, std::int64_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data), end = begin + static_cast<std::uintptr_t>(bytes);
  std::int64_t touched = 0;
  std::array<unsigned char, 4096> resident;
  for (std::uintptr_t at = begin / page * page; at < end; at += resident.size() * page) {
    const std::uintptr_t part = std::min<std::uintptr_t>(end - at, resident.size() * page);
    if (mincore(reinterpret_cast<void*>(at), part, resident.data()) != 0) return bytes;
    for (std::size_t i = 0; i * page < part; ++i)
      if (resident[i] & 1)
        touched += static_cast<std::int64_t>(std::min(end, at + (i + 1) * page) - std::max(begin, at + i * page));
  }
  return touched;
}

std::int64_t touchedPersistentBytes(const Executor& executor) {
  const ExecutionPlan& plan = executor.plan();
  std::int64_t touched = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.shares >= 0 || buffer.home == Home::kArena || buffer.home == Home::kDynamic) continue;
    // A small tensor shares its page with others.
    constexpr std::int64_t kPages = 1 << 16;
    const void* data = buffer.bytes >= kPages && buffer.value ? executor.view(buffer.value).data : nullptr;
    touched += data ? residentBytes(data, buffer.bytes) : buffer.bytes;
  }
  return touched;
}

}  // namespace stepscope
