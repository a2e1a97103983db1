// SPDX-License-Identifier: GPL-3.0-or-later
// Steps on their way to the thread that records, and how much of them is not written yet.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

// Steps that came without anything else between them are one job. From any thread.
class WaitingSteps {
 public:
  using Step = std::pair<StepPtr, bool>;  // and whether it was walked by hand

  // False when the job has begun.
  bool add(const StepPtr& step, bool walked) {
    const std::lock_guard lock(mutex_);
    if (!taken_) steps_.emplace_back(step, walked);
    return !taken_;
  }
  std::vector<Step> take() {
    const std::lock_guard lock(mutex_);
    taken_ = true;
    return std::exchange(steps_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Step> steps_;
  bool taken_ = false;
};

// Above these whoever makes steps waits: nothing is dropped, and memory does not grow with the length of a run.
struct RecordingLoad {
  static constexpr int kMostSteps = 512;
  static constexpr std::size_t kMostBytes = std::size_t{8}
                                            << 20;  // in the recorder's queue, which drops detail above 64 MiB

  std::atomic<int> steps = 0;          // handed over, and not in the recorder's queue yet
  std::atomic<std::size_t> bytes = 0;  // in that queue when it was last asked; none while nothing can be written
  std::atomic<bool> asked = false;

  bool tooMuch() const { return steps > kMostSteps || bytes > kMostBytes; }
};

}  // namespace stepscope
