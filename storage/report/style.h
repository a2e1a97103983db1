// The style sheet of the HTML report. Colours are tokens (custom properties) with a light and a dark value; no other colour
// is written anywhere in the report.
#pragma once

#include <string_view>

namespace stepscope::storage {

std::string_view reportStyle();

}  // namespace stepscope::storage
