#include "kernels/emulated/activity_log.h"

#include <algorithm>
#include <utility>

namespace stepscope::emulated {
namespace {

constexpr std::int64_t kMostOffset = std::int64_t{1} << 50;  // about two weeks
constexpr int kMostSkew = 200;                               // parts of a million, either way

std::uint64_t mixed(std::uint64_t word) {
  word += 0x9E3779B97F4A7C15ull;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
  return word ^ (word >> 31);
}

}  // namespace

ActivityLog::ActivityLog(std::uint64_t seed, std::int64_t dropEach)
    : dropEach_(dropEach),
      offset_(static_cast<std::int64_t>(mixed(seed) % static_cast<std::uint64_t>(kMostOffset))),
      rate_(1 + (static_cast<double>(mixed(seed + 1) % (2 * kMostSkew + 1)) - kMostSkew) * 1e-6),
      random_(seed) {}

std::int64_t ActivityLog::now() const { return pair().device; }

ClockPair ActivityLog::pair() const {
  const std::int64_t host = hostClock();
  return {offset_ + static_cast<std::int64_t>(rate_ * static_cast<double>(host)), host};
}

void ActivityLog::start() {
  activity_ = {};
  activity_.clocks.push_back(pair());
  on_ = true;
}

void ActivityLog::add(ActivityRecord record, const ActivityKernel* kernel) {
  if (!on_) return;
  if (dropEach_ > 0 && ++seen_ % dropEach_ == 0) {
    ++activity_.lost;
    ++lost_;
    return;
  }
  if (kernel) {
    const auto found = std::ranges::find(activity_.kernels, *kernel);
    record.kernel = static_cast<std::int32_t>(found - activity_.kernels.begin());
    if (found == activity_.kernels.end()) activity_.kernels.push_back(*kernel);
  }
  // Somewhere among the others: nothing may depend on their order.
  auto& records = activity_.records;
  records.push_back(record);
  std::swap(records.back(), records[mixed(++random_) % records.size()]);
}

double occupancyOf(int threads, std::int64_t sharedBytes) {
  constexpr std::int64_t kMostOnOne = 2048, kMostBlocks = 32, kShared = 228 * 1024, kSharedOfSystem = 1024, kWarpSize = 32;
  const std::int64_t block = (threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  std::int64_t blocks = std::min(kMostBlocks, kMostOnOne / std::max<std::int64_t>(1, block));
  if (sharedBytes > 0) blocks = std::min(blocks, kShared / (sharedBytes + kSharedOfSystem));
  return static_cast<double>(blocks * block) / static_cast<double>(kMostOnOne);
}

Activity ActivityLog::take() {
  activity_.clocks.push_back(pair());
  on_ = false;
  return std::exchange(activity_, {});
}

}  // namespace stepscope::emulated
