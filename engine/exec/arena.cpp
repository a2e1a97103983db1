#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ctime>

#include "engine/exec/executor.h"

namespace stepscope {

Arena::~Arena() {
  if (data_) munmap(data_, static_cast<std::size_t>(bytes_));
}

Status Arena::reserve(std::int64_t bytes) {
  if (data_) munmap(data_, static_cast<std::size_t>(bytes_));
  data_ = nullptr;
  bytes_ = 0;
  if (bytes == 0) return {};
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("arena: the system refused {} bytes; expected that much address space", bytes));
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  // Huge pages save page faults where the arena is large; below that they would only blur what is touched.
  constexpr std::int64_t kHuge = std::int64_t{64} << 20;
  madvise(memory, static_cast<std::size_t>(bytes), bytes >= kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return {};
}

std::int64_t Arena::touchedBytes() const {
  if (!data_) return 0;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((static_cast<std::size_t>(bytes_) + page - 1) / page);
  if (mincore(data_, static_cast<std::size_t>(bytes_), resident.data()) != 0) return 0;
  std::int64_t touched = 0;
  for (std::size_t i = 0; i < resident.size(); ++i)
    if (resident[i] & 1) touched += static_cast<std::int64_t>(std::min(page, static_cast<std::size_t>(bytes_) - i * page));
  return touched;
}

std::int64_t monotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace stepscope
