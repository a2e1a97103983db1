// What the library that the fake NVRTC makes of a source asks the fake GPU while its kernel runs.
#pragma once

namespace stepscope::fake {

struct CompiledThread {
  unsigned (*index)(int which) = nullptr;  // 0: of the thread in its block, 1: of the block
  void (*sync)() = nullptr;                // a barrier of the block
  double (*shuffleXor)(double value, int lanes) = nullptr;
};

}  // namespace stepscope::fake
