// Which input positions a window touches: the loops that convolution and pooling share.
#pragma once

#include <vector>

#include "kernels/window.h"

namespace stepscope::reference {

// One meeting of a kernel tap with an element: `tap` indexes the kernel, `position` the other side (flat, row-major).
struct Tap {
  std::int64_t tap = 0, position = 0;
};

// Taps of output position `o` that fall inside the input, in row-major order; `position` is in the input.
void tapsOfOutput(const Window& window, const Dims& in, const Dims& out, std::int64_t o, std::vector<Tap>& taps);
// Taps through which input position `i` is seen; `position` is in the output.
void tapsOfInput(const Window& window, const Dims& in, const Dims& out, std::int64_t i, std::vector<Tap>& taps);

// Elements under the window at output position `o` where the padding counts too (not what lies beyond it).
std::int64_t paddedCount(const Window& window, const Dims& in, const Dims& out, std::int64_t o);

}  // namespace stepscope::reference
