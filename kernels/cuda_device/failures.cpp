#include "kernels/cuda_device/failures.h"

#include <fmt/format.h>

namespace stepscope::cuda {

tl::unexpected<Error> Failures::failed(CuResult result, const std::string& what) {
  const std::string found = driver_.describe(result);
  if (isLoss(result)) {
    broken_ =
        Error{ErrorCode::kInternal, fmt::format("device '{}': the device is lost: {}, found at: {}", device_, found, what)};
  } else if (isSticky(result)) {
    broken_ = Error{
        ErrorCode::kInternal,
        fmt::format("device '{}': a kernel failed: {}, found at: {}{}; with CUDA_LAUNCH_BLOCKING=1 the kernel is named",
                    device_, found, what,
                    lastKernel_.empty() ? "" : fmt::format("; the last kernel put on a stream was '{}'", lastKernel_))};
  } else {
    const ErrorCode code = result == kCuOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kInternal;
    return fail(code, fmt::format("device '{}': {}: {}", device_, what, found));
  }
  return tl::make_unexpected(*broken_);
}

Status Failures::check(CuResult result, const std::string& what) {
  if (result == kCuSuccess) return {};
  return failed(result, what);
}

tl::unexpected<Error> Failures::named(const Error& error) const {
  return fail(error.code, fmt::format("device '{}': {}", device_, error.message));
}

}  // namespace stepscope::cuda
