// Two tensors element by element, by the rule of engine/snapshot/number_rule.h.
#pragma once

#include <string>

#include "engine/snapshot/tensor.pb.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

// Of one shape; otherwise everything differs, infinitely. Of one type, `differing` counts unequal bits, so -0 beside 0 and
// two NaN of other bits are told; of two types it counts unequal numbers. Strings have no distance, only a count.
snapshot::ComparisonResult compareTensors(const std::string& name, const TensorView& a, const TensorView& b);

// `contents` as numbers of `dtype`; kInvalidArgument naming `what`, the element and both types when one cannot be held
// exactly, or when strings are among them.
Result<Tensor> convertExactly(const std::string& what, const TensorView& contents, DType dtype);

}  // namespace stepscope
