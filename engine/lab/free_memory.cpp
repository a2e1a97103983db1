#include "engine/lab/free_memory.h"

#include <algorithm>

#include "engine/plan/fits.h"
#include "kernels/available_memory.h"

namespace stepscope {

std::int64_t freeMemoryBytes() {
  const std::int64_t available = availableMemoryBytes(), most = machineMemoryBytes();
  return most > 0 ? std::min(available, most) : available;
}

}  // namespace stepscope
