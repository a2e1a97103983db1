// Options from the environment: STEPSCOPE_SET_PASS_FUSE_GELU=off is --set pass.fuse_gelu=off for every program and for the
// worker of the window. They stand between the defaults and what the command line or the window sets.
#pragma once

#include <string>
#include <string_view>

#include "engine/build/options.h"

namespace stepscope {

// "STEPSCOPE_SET_" and the name in capitals, with '_' for what is no letter or digit.
std::string environmentName(std::string_view option);

// Sets what `environment` ("NAME=VALUE" strings, null at the end) has, set by "environment". Errors: a variable that begins
// so and is no option, a value that the option refuses; both name the variable. Option cache.dir, where nobody has set it,
// becomes the user's folder.
Status applyEnvironment(TrainOptions& options, const char* const* environment,
                        const std::vector<OptionInfo>& table = optionTable());
// That of this process.
Status applyEnvironment(TrainOptions& options, const std::vector<OptionInfo>& table = optionTable());

}  // namespace stepscope
