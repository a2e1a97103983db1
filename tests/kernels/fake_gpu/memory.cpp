#include "tests/kernels/fake_gpu/memory.h"

#include <sys/mman.h>

#include <cstring>

namespace stepscope::fake {
namespace {

constexpr std::size_t kAddresses = std::size_t{64} << 30, kPage = 4096;
constexpr unsigned char kRubbish = 0xA5;

std::size_t pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

void Memory::reset(std::size_t total) {
  if (begin_ == 0) {
    void* const all = mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    begin_ = all == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(all);
    next_ = begin_;
  }
  total_ = total;
}

std::uintptr_t Memory::allocate(std::size_t bytes) {
  if (begin_ == 0 || bytes == 0 || used_ + bytes > total_ || next_ + pages(bytes) + kPage > begin_ + kAddresses) return 0;
  const std::uintptr_t address = next_;
  next_ += pages(bytes) + kPage;
  live_[address] = bytes;
  used_ += bytes;
  const Opened opened(*this);
  std::memset(pointer(address), kRubbish, bytes);
  return address;
}

bool Memory::free(std::uintptr_t address) {
  const auto found = live_.find(address);
  if (found == live_.end()) return false;
  madvise(pointer(address), pages(found->second), MADV_DONTNEED);
  used_ -= found->second;
  live_.erase(found);
  return true;
}

bool Memory::holds(std::uintptr_t address, std::size_t bytes) const {
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return false;
  --it;
  return address + bytes <= it->first + it->second;
}

void Memory::setAccess(bool open) {
  for (const auto& [address, bytes] : live_)
    mprotect(pointer(address), pages(bytes), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace stepscope::fake
