// Where memory is: whether host code can follow its addresses. And streams, by number.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepscope {

using StreamId = std::int32_t;  // of a device; stream 0 is always there

enum class Space : std::uint8_t {
  kHost,    // host code reads and writes it
  kDevice,  // only kernels and copies of one device do
};
// "host", "device": as people read it.
constexpr std::string_view spaceName(Space space) { return space == Space::kHost ? "host" : "device"; }

}  // namespace stepscope
