// Whether work is still wanted. Another thread sets the flag; long work looks at it between its parts and ends.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/status.h"

namespace stepscope {

class Cancel {
 public:
  Cancel() = default;                                        // nobody cancels
  explicit Cancel(std::atomic<bool>* flag) : flag_(flag) {}  // lent; null: nobody cancels

  // Error kCancelled, "<what>: cancelled", once the flag is set; it takes the flag back, so that it ends one piece of work.
  Status check(std::string_view what) const {
    if (!flag_ || !flag_->load(std::memory_order_relaxed) || !flag_->exchange(false)) return {};
    std::string text(what);
    text += ": cancelled";
    return fail(ErrorCode::kCancelled, std::move(text));
  }

 private:
  std::atomic<bool>* flag_ = nullptr;
};

}  // namespace stepscope
