#include "engine/exec/clock.h"

#include <ctime>
#include <fstream>
#include <string>

#include "engine/exec/executor.h"

namespace stepscope {

bool TickClock::counterIsTrusted() {
#if defined(__x86_64__)
  static const bool trusted = [] {
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string source;
    return file >> source && source == "tsc";
  }();
  return trusted;
#else
  return false;
#endif
}

TickClock::TickClock(bool cheap) : usesCounter_(cheap && counterIsTrusted()), first_(moment()), last_(first_) {}

// Both clocks at once: the closest of several tries, because the thread may lose its core between the two.
TickClock::Moment TickClock::moment() const {
  if (!usesCounter_) return {0, monotonicNs()};
  Moment best;
  std::int64_t closest = INT64_MAX;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t before = counter(), ns = monotonicNs(), after = counter();
    if (after - before >= closest) continue;
    closest = after - before;
    best = {before + closest / 2, ns};
  }
  return best;
}

void TickClock::settle() {
  last_ = moment();
  if (last_.ticks > first_.ticks)
    nsPerTick_ = static_cast<double>(last_.ns - first_.ns) / static_cast<double>(last_.ticks - first_.ticks);
}

std::int64_t monotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace stepscope
