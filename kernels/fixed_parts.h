// Sums that are cut by size alone: option deterministic=threads.
//
// A kernel that adds up over the parts of its threads gives other bits for another number of threads. While a FixedParts
// lives, the kernels that its thread makes cut such sums into parts whose number depends on extents alone; the threads only
// share the parts out. A kernel that cannot keeps its verdict (Determinism::perThread) and is then made for one thread
// (engine/exec/make_kernel.h). The scope counts where a kernel is made, not where it runs.
#pragma once

#include <algorithm>

namespace stepscope {

// More parts than this are not worth their borders: every part of a product packs an operand again.
inline constexpr int kFixedParts = 16;

class FixedParts {
 public:
  explicit FixedParts(bool fixed) : before_(current()) { current() = fixed; }
  ~FixedParts() { current() = before_; }
  FixedParts(const FixedParts&) = delete;
  FixedParts& operator=(const FixedParts&) = delete;

  static bool here() { return current(); }

 private:
  static bool& current() {
    static thread_local bool fixed = false;
    return fixed;
  }
  bool before_;
};

// Into how many parts a sum is to be cut that `threads` threads compute.
inline int partsForSums(int threads) { return FixedParts::here() ? kFixedParts : std::max(1, threads); }

}  // namespace stepscope
