// SPDX-License-Identifier: GPL-3.0-or-later
// The difference of two tensors of one shape, in f64: NaN equals NaN, an infinity its equal.
#pragma once

#include "engine/snapshot/tensor.pb.h"
#include "views/tensors/tensor_values.h"

namespace stepscope {

// `worst_index` is the position within the slice. An unequal shape is told in `why` and gives an empty result.
snapshot::ComparisonResult compareTensors(const TensorValues& a, const TensorValues& b, QString* why);

}  // namespace stepscope
