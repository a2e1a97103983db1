// Names from files in messages.
#pragma once

#include <string>
#include <string_view>

namespace stepscope {

// Control characters as \xNN, at most 120 bytes.
std::string shownName(std::string_view name);

}  // namespace stepscope
