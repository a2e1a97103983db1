// What an error of the driver means for a device: one call has failed, or nothing works any more. The first error that stays
// is kept, and told again by every later call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

class Failures {
 public:
  // `device`: its name, for people.
  Failures(const Driver& driver, std::string device) : driver_(driver), device_(std::move(device)) {}

  // An error where `result` is one; `what`: the call, for people. Errors: kOutOfMemory; kInternal.
  Status check(CuResult result, const std::string& what);
  // The error of a result that is one.
  tl::unexpected<Error> failed(CuResult result, const std::string& what);
  // The error that stays.
  const std::optional<Error>& broken() const { return broken_; }
  // `error`, with the name of the device before it.
  tl::unexpected<Error> named(const Error& error) const;
  // What was put on a stream last: work runs behind the program, so it may be what an error is about.
  void notePut(std::string_view kernel) { lastKernel_ = kernel; }

 private:
  const Driver& driver_;
  const std::string device_;
  std::string lastKernel_;
  std::optional<Error> broken_;
};

}  // namespace stepscope::cuda
