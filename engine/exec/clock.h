// A clock to look at between instructions, cheaper than that of the operating system (monotonicNs).
//
// Reading the operating system's clock touches pages of the system, which large kernels push out of the caches: then it
// costs up to half a microsecond. The processor's counter costs some 20 ns always. It is used where the operating system
// itself keeps time with it, which says that it runs evenly and alike on all cores.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace stepscope {

// An interval in which moments are marked in ticks: of counter() where usesCounter(), else of monotonicNs(). settle() ends
// it; from then on they can be told in nanoseconds of the operating system's clock, never outside of the interval.
class TickClock {
 public:
  // `cheap` = false never uses the counter: for intervals too short to tell its rate from.
  explicit TickClock(bool cheap);

  bool usesCounter() const { return usesCounter_; }
  static std::int64_t counter() {
#if defined(__x86_64__)
    return static_cast<std::int64_t>(__rdtsc());
#else
    return 0;
#endif
  }

  void settle();
  std::int64_t beginNs() const { return first_.ns; }
  std::int64_t ns(std::int64_t ticks) const {
    if (!usesCounter_) return ticks;
    return std::clamp(first_.ns + static_cast<std::int64_t>(static_cast<double>(ticks - first_.ticks) * nsPerTick_),
                      first_.ns, last_.ns);
  }

  // Whether the counter may be used on this machine.
  static bool counterIsTrusted();

 private:
  struct Moment {
    std::int64_t ticks = 0, ns = 0;
  };
  Moment moment() const;

  bool usesCounter_;
  Moment first_, last_;
  double nsPerTick_ = 1;
};

}  // namespace stepscope
