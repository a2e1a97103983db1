// Work over the images of a batch in parts whose number depends on extents alone (kernels/fixed_parts.h): every part has a
// kernel of its own, made for one thread, and the threads share the parts out.
#pragma once

#include <memory>
#include <vector>

#include "kernels/kernel.h"

namespace stepscope::cpu {

struct ImagePart {
  std::unique_ptr<Kernel> kernel;
  std::int64_t first = 0;  // image
};

// Parts that a convolution of `batch` images is cut into: each has to be worth the copy of the weights that it makes.
std::int64_t imageParts(std::int64_t batch, std::int64_t pixels);

// `inputBytes`, `outputBytes`: of one image; 0 where all parts read the whole input, and where the output is a sum over the
// images, of `outputElements` floats: parts then write sums of their own, which are added in their order.
std::unique_ptr<Kernel> makeImageParts(std::vector<ImagePart> parts, const KernelSpec& spec,
                                       std::vector<std::size_t> inputBytes, std::size_t outputBytes);

}  // namespace stepscope::cpu
