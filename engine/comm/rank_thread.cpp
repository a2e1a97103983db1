#include "engine/comm/rank_thread.h"

#include <utility>

namespace stepscope {

RankThread::RankThread() : thread_([this] { run(); }) {}

RankThread::~RankThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RankThread::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

Status RankThread::take() {
  std::unique_lock lock(mutex_);
  SS_CHECK(!results_.empty() || !jobs_.empty());
  changed_.wait(lock, [this] { return !results_.empty(); });
  Status result = std::move(results_.front());
  results_.pop_front();
  return result;
}

void RankThread::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty(); });
}

void RankThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    lock.unlock();
    Status result = job();
    lock.lock();
    jobs_.pop_front();
    results_.push_back(std::move(result));
    changed_.notify_all();
  }
}

}  // namespace stepscope
