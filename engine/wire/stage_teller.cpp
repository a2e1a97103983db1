#include "engine/wire/stage_teller.h"

#include <array>
#include <atomic>
#include <csignal>
#include <ctime>

#include "engine/wire/border.h"

namespace stepscope {
namespace {

constexpr std::array kSignals{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
std::array<struct sigaction, kSignals.size()> before;
std::atomic<int> untold = 0;  // stages of all tellers
std::atomic<bool> dying = false;
static_assert(std::atomic<int>::is_always_lock_free);

void restore() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

// Nothing but waiting is safe here; then the signal takes the course that it had before.
void wait(int number) {
  constexpr long kTickNs = 5'000'000;
  constexpr int kTicks = 400;
  if (dying.exchange(true)) {  // the teller itself
    restore();
    raise(number);
    return;
  }
  for (int tick = 0; tick < kTicks && untold > 0 && dying; ++tick) {
    const timespec time{0, kTickNs};
    nanosleep(&time, nullptr);
  }
  restore();
  raise(number);  // delivered when this returns
}

}  // namespace

void StageTeller::waitBeforeDying() {
  struct sigaction action = {};
  action.sa_handler = wait;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
}

StageTeller::StageTeller(Send send) : send_(std::move(send)), thread_([this] { work(); }) {}

StageTeller::~StageTeller() {
  drop();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StageTeller::tell(const Stage& stage, std::shared_ptr<const Registry> registry) {
  {
    const std::lock_guard lock(mutex_);
    told_.clear();
    waiting_.push_back({stage, std::move(registry)});
    ++untold;
  }
  changed_.notify_all();
}

void StageTeller::drop() {
  std::unique_lock lock(mutex_);
  untold -= static_cast<int>(waiting_.size());
  waiting_.clear();
  changed_.wait(lock, [this] { return !working_; });
  told_.clear();
}

void StageTeller::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Told next = std::move(waiting_.front());
    waiting_.pop_front();
    working_ = true;
    lock.unlock();
    (void)caught("graph", [&]() -> Status {
      send_(next.stage, *next.registry);
      return {};
    });
    lock.lock();
    told_.push_back(std::move(next));
    working_ = false;
    --untold;
    changed_.notify_all();
  }
}

}  // namespace stepscope
