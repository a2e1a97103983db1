// Names of the copies of parameters in a low type, which pass keep_low_weights adds and the state keeps up: state values
// "<parameter>.bfloat16_copy" and "<parameter>.float16_copy", whose contents are those of the parameter, rounded to nearest.
// They are no part of a checkpoint: whoever has the parameter can make them.
#pragma once

#include <string>
#include <string_view>

#include "kernels/dtype.h"

namespace stepscope {

std::string lowCopyName(std::string_view parameter, DType low);
// The parameter that the copy of this name follows; empty: it is no name of a copy.
std::string_view sourceOfLowCopy(std::string_view name);

}  // namespace stepscope
