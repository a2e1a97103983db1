// What a kernel that runs on a GPU tells the host of an operand with a value that it must not have. Lies in memory that both
// reach; the host reads it when the launch is over.
#pragma once

namespace stepscope::gpu {

inline constexpr unsigned long long kNoComplaint = ~0ull;

struct Complained {
  unsigned long long position = kNoComplaint;  // the smallest one at which a thread complained
  long long value = 0;                         // what was found there
  unsigned int lock = 0;                       // 1 while a thread writes the other two
};

}  // namespace stepscope::gpu
