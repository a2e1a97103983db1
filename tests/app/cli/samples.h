// SPDX-License-Identifier: Apache-2.0
// Bundled samples by their paths, as the command line takes them.
#pragma once

#include <string>

namespace stepscope::testing {

inline const std::string kDigits = SS_SAMPLES "/digits/model.onnx";
inline const std::string kDigitsWithData = kDigits + " --data " SS_SAMPLES "/digits/batches.npz ";

}  // namespace stepscope::testing
