// What the name of an emulated device asks for.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "kernels/status.h"

namespace stepscope::emulated {

struct Order {
  std::uint64_t seed = 1;
  bool eager = false;   // every call runs at once
  bool tracked = true;  // races, missing values and missing results are looked for
  std::set<std::string> lacks;
  // The number of the call that fails, from 1; 0 = none.
  std::int64_t failAllocation = 0, failLaunch = 0, loseDevice = 0;
  std::int64_t memory = 0;       // bytes that it has; 0: as much as the system gives
  std::int64_t dropRecords = 0;  // every so manieth record of activity is lost; 0 = none

  // Of the device's whole name. Errors: as makeEmulatedDevice.
  static Result<Order> of(const std::string& name);
};

}  // namespace stepscope::emulated
