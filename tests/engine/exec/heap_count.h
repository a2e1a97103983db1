// Counts what the process takes from the heap and by whom: the test executable brings its own malloc family and operator
// new, which libraries use too, and the return address tells who asked.
#pragma once

#include <array>
#include <cstdint>

namespace stepscope::testing {

enum class Taker : std::uint8_t { kOurs, kOneDnn, kOpenMp };  // kOurs: whatever is not one of the two libraries

struct HeapCount {
  std::int64_t calls = 0, bytes = 0;
  HeapCount operator-(const HeapCount& o) const { return {calls - o.calls, bytes - o.bytes}; }
};

// What was taken since the first call of this function, by all threads; by Taker.
std::array<HeapCount, 3> heapTaken();

// False where a sanitizer has the malloc family for itself.
bool heapIsCounted();

}  // namespace stepscope::testing
