// What one round of a lowering did that needs facts of inference: rounds and inference alternate until nothing is left.
#pragma once

#include <cstddef>
#include <string>

namespace stepscope {

struct LowerReport {
  std::size_t lowered = 0;
  std::string blocked;  // why the first node that had to stay could not be lowered; empty: none stayed
};

}  // namespace stepscope
