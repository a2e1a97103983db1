// The value of an option as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/build/options.h"

namespace stepscope::cli {

// A number where the option counts or measures something; where it says something else ("auto"), and of other options and
// unknown ones, text.
nlohmann::json settingJson(std::string_view option, const std::string& value,
                           const std::vector<OptionInfo>& table = optionTable());

}  // namespace stepscope::cli
