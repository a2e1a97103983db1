#include "engine/comm/device_watch.h"

#include <fmt/format.h>

#include <chrono>

namespace stepscope {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(50);

// What the library tells of them.
std::optional<Error> sickness(const DeviceRanks& ranks, const std::string& newest) {
  const Status health = ranks.health();
  if (health) return std::nullopt;
  return Error{health.error().code, fmt::format("{}: {}", newest, health.error().message)};
}

}  // namespace

DeviceWatch::DeviceWatch(std::unique_ptr<DeviceRanks> ranks, const Transport& transport,
                         const std::atomic<std::int64_t>& giveUpAt, std::int64_t timeoutNs)
    : ranks_(std::move(ranks)), transport_(transport), giveUpAt_(giveUpAt), timeoutNs_(timeoutNs), thread_([this] {
        run();
      }) {}

DeviceWatch::~DeviceWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DeviceWatch::begins(const std::string& collective) {
  const std::lock_guard lock(mutex_);
  newest_ = collective;
  sinceNs_ = rankClockNs();
  if (!runs_) changed_.notify_all();
  runs_ = true;
}

Status DeviceWatch::ended(int* culprit) {
  const std::lock_guard lock(mutex_);
  // What came after the last look. A rank that is gone by now had done its part: all of it has run.
  if (!error_ && runs_) error_ = sickness(*ranks_, newest_);
  runs_ = false;
  if (!error_) return {};
  if (culprit_ >= 0) *culprit = culprit_;
  return tl::make_unexpected(*error_);
}

bool DeviceWatch::gaveUp() {
  const std::lock_guard lock(mutex_);
  return error_.has_value();
}

void DeviceWatch::giveUp() { ranks_->abort(); }

// Called with the mutex held.
std::optional<Error> DeviceWatch::look() {
  if (auto sick = sickness(*ranks_, newest_)) return sick;
  if (culprit_ = transport_.lostRank(); culprit_ >= 0)
    return Error{ErrorCode::kIo, fmt::format("rank {}: its connection was closed; expected it at {}", culprit_, newest_)};
  const std::int64_t now = rankClockNs(), giveUp = giveUpAt_;
  if (giveUp > 0 && now > giveUp)
    return Error{ErrorCode::kIo,
                 fmt::format("{}: told to end while it runs; expected that all ranks put it on their streams", newest_)};
  if (now > sinceNs_ + timeoutNs_)
    return Error{ErrorCode::kIo, fmt::format("{}: it did not end within {} s; expected that all ranks put it on their "
                                             "streams; hint: option ranks.timeout",
                                             newest_, timeoutNs_ / 1'000'000'000)};
  return std::nullopt;
}

void DeviceWatch::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (!runs_) {
      changed_.wait(lock);
      continue;
    }
    if (error_ = look(); error_) {
      ranks_->abort();
      return;
    }
    changed_.wait_for(lock, kBetweenLooks);
  }
}

}  // namespace stepscope
