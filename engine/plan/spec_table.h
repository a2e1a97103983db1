// What kernels are made from, held once: layers that repeat ask for the same kernel over and over.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "kernels/kernel.h"

namespace stepscope {

// Equal in all that a kernel sees; constants by contents.
bool sameSpec(const KernelSpec& a, const KernelSpec& b);

class SpecTable {
 public:
  // The spec itself, or one given before that is equal to it. Large constants count as equal where they are the same memory.
  std::shared_ptr<const KernelSpec> share(KernelSpec spec);

 private:
  std::unordered_multimap<std::size_t, std::shared_ptr<const KernelSpec>> specs_;  // by a hash of op and extents
};

}  // namespace stepscope
