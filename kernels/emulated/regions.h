// Memory of the emulated device: every allocation is mapped twice. The address that everybody sees has no access rights;
// kernels and copies use the second one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "kernels/status.h"

namespace stepscope::emulated {

class Regions {
 public:
  ~Regions();
  // Zero-filled. Errors: kOutOfMemory.
  Result<std::byte*> allocate(std::int64_t bytes);
  void free(std::byte* address) noexcept;
  std::int64_t bytes() const { return bytes_; }  // of what is allocated

  // The second address of `bytes` from `address` on. Errors (kInternal): memory that was freed, memory of the host, a range
  // that leaves its allocation. `what` names the operand.
  Result<std::byte*> open(const void* address, std::int64_t bytes, const std::string& what) const;
  // The same where the address may be of the host, which it then gives back.
  Result<std::byte*> openOrHost(const void* address, std::int64_t bytes, const std::string& what) const;

  // Whether an allocation holds the address, freed ones included.
  bool isOwn(const void* address) const { return find(address) != nullptr; }

 private:
  struct Region {
    std::byte* open = nullptr;  // null once it is freed
    std::int64_t bytes = 0;
  };
  const std::pair<std::byte* const, Region>* find(const void* address) const;
  // Freed ones stay here, closed, so that their addresses are not given out again for a while.
  std::map<std::byte*, Region> regions_;
  std::int64_t bytes_ = 0, freedBytes_ = 0;
};

}  // namespace stepscope::emulated
