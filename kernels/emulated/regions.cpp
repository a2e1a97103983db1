#include "kernels/emulated/regions.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace stepscope::emulated {
namespace {

constexpr std::int64_t kMostFreed = std::int64_t{16} << 30;  // address space that is kept closed after it was freed

// Whole pages, and one more, so that two allocations never touch.
std::size_t mapped(std::int64_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (static_cast<std::size_t>(bytes) + page - 1) / page * page + page;
}

void* map(std::size_t size, int rights) {
  void* const memory = mmap(nullptr, size, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Regions::~Regions() {
  for (const auto& [address, region] : regions_) {
    munmap(address, mapped(region.bytes));
    if (region.open) munmap(region.open, mapped(region.bytes));
  }
}

Result<std::byte*> Regions::allocate(std::int64_t bytes) {
  const std::size_t size = mapped(bytes);
  void *const closed = map(size, PROT_NONE), *const open = map(size, PROT_READ | PROT_WRITE);
  if (!closed || !open) {
    if (closed) munmap(closed, size);
    if (open) munmap(open, size);
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("the system refused {} bytes; expected that much address space", bytes));
  }
  auto* const address = static_cast<std::byte*>(closed);
  regions_[address] = {static_cast<std::byte*>(open), bytes};
  bytes_ += bytes;
  return address;
}

void Regions::free(std::byte* address) noexcept {
  Region& region = regions_.at(address);
  munmap(region.open, mapped(region.bytes));
  region.open = nullptr;
  freedBytes_ += region.bytes;
  bytes_ -= region.bytes;
  if (freedBytes_ < kMostFreed) return;
  for (auto it = regions_.begin(); it != regions_.end();) {
    if (it->second.open) {
      ++it;
      continue;
    }
    munmap(it->first, mapped(it->second.bytes));
    it = regions_.erase(it);
  }
  freedBytes_ = 0;
}

const std::pair<std::byte* const, Regions::Region>* Regions::find(const void* address) const {
  auto* const place = static_cast<std::byte*>(const_cast<void*>(address));
  auto it = regions_.upper_bound(place);
  if (it == regions_.begin()) return nullptr;
  --it;
  return place - it->first <= it->second.bytes ? &*it : nullptr;
}

Result<std::byte*> Regions::open(const void* address, std::int64_t bytes, const std::string& what) const {
  const auto* const found = find(address);
  if (!found)
    return fail(ErrorCode::kInternal, fmt::format("{}: {} bytes of the host; expected memory of the device", what, bytes));
  const auto& [begin, region] = *found;
  const std::int64_t offset = static_cast<const std::byte*>(address) - begin;
  if (!region.open)
    return fail(ErrorCode::kInternal,
                fmt::format("{}: byte {} of an allocation of {} bytes that was freed", what, offset, region.bytes));
  if (offset + bytes > region.bytes)
    return fail(ErrorCode::kInternal,
                fmt::format("{}: {} bytes from byte {} of an allocation of {} bytes", what, bytes, offset, region.bytes));
  return region.open + offset;
}

Result<std::byte*> Regions::openOrHost(const void* address, std::int64_t bytes, const std::string& what) const {
  if (!find(address)) return static_cast<std::byte*>(const_cast<void*>(address));
  return open(address, bytes, what);
}

}  // namespace stepscope::emulated
