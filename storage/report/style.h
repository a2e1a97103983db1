// How the HTML report looks. Colours have names with a light and a dark value; no other colour is written anywhere in a
// report, on paper neither.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepscope::storage {

struct PaletteColour {
  std::string_view name, light, dark;  // "#RRGGBB"
};

// Every colour that a report may have.
std::span<const PaletteColour> palette();
std::string reportStyle();  // the whole sheet

}  // namespace stepscope::storage
