// Memory of the fake GPU: one range of addresses, closed to host code but while a kernel or a copy runs. New memory holds
// rubbish, freed memory is not given out again, and between two allocations lies a closed page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace stepscope::fake {

class Memory {
 public:
  /// `total`: bytes that can be allocated at once.
  void reset(std::size_t total);
  /// 0 where they do not fit.
  std::uintptr_t allocate(std::size_t bytes);
  /// False for what is no allocation.
  bool free(std::uintptr_t address);
  bool holds(std::uintptr_t address, std::size_t bytes) const;
  std::size_t total() const { return total_; }
  std::size_t used() const { return used_; }

  /// Open while one of these lives.
  class Opened {
   public:
    explicit Opened(Memory& memory) : memory_(memory) { memory_.setAccess(true); }
    ~Opened() { memory_.setAccess(false); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    Memory& memory_;
  };

 private:
  void setAccess(bool open);
  std::uintptr_t begin_ = 0, next_ = 0;
  std::size_t total_ = 0, used_ = 0;
  std::map<std::uintptr_t, std::size_t> live_;
};

}  // namespace stepscope::fake
