// SPDX-License-Identifier: GPL-3.0-or-later
// Model files that tests of the window make, for what no bundled model has. Without Qt: the engine's names are not its.
#pragma once

#include <string>

namespace stepscope::testing {

// The bytes of y = x · scale with x float32[batch, width], one parameter and no loss; `width` names the symbolic extent.
std::string scaledModel(const std::string& width);

// The bytes of the model that tests/app/api/attach_script.cpp trains.
std::string scriptModel();

// The same model, but its parameter of 64 bytes lies in this file beside it.
std::string externalModel(const std::string& location);

}  // namespace stepscope::testing
