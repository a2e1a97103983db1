#include "kernels/emulated/activity_log.h"

#include <algorithm>
#include <utility>

namespace stepscope::emulated {
namespace {

constexpr std::int64_t kMostOffset = std::int64_t{1} << 50;  // about two weeks
constexpr int kMostSkew = 200;                               // parts of a million, either way
constexpr std::size_t kBufferRecords = 64;

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

void ActivityLog::start(ActivityRung rung) {
  rung_ = rung;
  activity_ = {};
  if (rung == ActivityRung::kCounters) activity_.counted = "bytes that threads load and store, without caches";
  buffer_.clear();
  activity_.clocks.push_back(pair());
  on_ = true;
}

ActivitySource::Rung ActivityLog::rung() const {
  return {rung_ == ActivityRung::kCounters ? "counters" : rung_ == ActivityRung::kEvents ? "events" : "activity", ""};
}

void ActivityLog::add(ActivityRecord record, const ActivityKernel* kernel, const KernelCounters* counters) {
  if (!on_ || (rung_ == ActivityRung::kEvents && !isWork(record.kind))) return;
  if (drops()) {
    if (counters) ++activity_.uncounted;
    return;
  }
  if (kernel) {
    const auto found = std::ranges::find(activity_.kernels, *kernel);
    record.kernel = static_cast<std::int32_t>(found - activity_.kernels.begin());
    if (found == activity_.kernels.end()) activity_.kernels.push_back(*kernel);
  }
  if (counters) {
    record.counters = static_cast<std::int32_t>(activity_.counters.size());
    activity_.counters.push_back(*counters);
  }
  buffer_.push_back(record);
  if (buffer_.size() == kBufferRecords) handOver();
}

bool ActivityLog::drops() {
  if (dropEach_ == 0 || ++seen_ % dropEach_ != 0) return false;
  ++activity_.lost;
  ++lost_;
  return true;
}

// Somewhere among the others: nothing may depend on their order.
void ActivityLog::keep(const ActivityRecord& record) {
  auto& records = activity_.records;
  records.push_back(record);
  std::swap(records.back(), records[mixed(++random_) % records.size()]);
}

void ActivityLog::handOver() {
  ActivityRecord overhead;
  overhead.kind = ActivityKind::kOverhead;
  overhead.stream = kNoStream;
  overhead.what = "handing over records";
  overhead.begin = now();
  for (const ActivityRecord& record : buffer_) keep(record);
  buffer_.clear();
  overhead.end = now();
  if (rung_ != ActivityRung::kEvents && !drops()) keep(overhead);
}

double occupancyOf(int threads, std::int64_t sharedBytes) {
  constexpr std::int64_t kMostOnOne = 2048, kMostBlocks = 32, kShared = 228 * 1024, kSharedOfSystem = 1024, kWarpSize = 32;
  const std::int64_t block = (threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  std::int64_t blocks = std::min(kMostBlocks, kMostOnOne / std::max<std::int64_t>(1, block));
  if (sharedBytes > 0) blocks = std::min(blocks, kShared / (sharedBytes + kSharedOfSystem));
  return static_cast<double>(blocks * block) / static_cast<double>(kMostOnOne);
}

Activity ActivityLog::take() {
  if (!buffer_.empty()) handOver();
  activity_.clocks.push_back(pair());
  on_ = false;
  return std::exchange(activity_, {});
}

}  // namespace stepscope::emulated
