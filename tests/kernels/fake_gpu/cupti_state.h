// What the two files of the fake CUPTI share.
#pragma once

#include "tests/kernels/fake_gpu/observer.h"

namespace stepscope::fake {

/// From now on the fake CUPTI is told what the fake GPU does.
void observeGpu();
/// A kernel has run: the range that is open counts it (cupti_ranges.cpp).
void countKernel(const Work& work);

}  // namespace stepscope::fake
