// Values as JSON has them.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stepscope::storage {

// NaN and infinities, which JSON lacks, become the strings "NaN", "Infinity" and "-Infinity", wherever they stand in a
// value.
template <typename Json>
void spellNumbers(Json& value) {
  if (value.is_structured()) {
    for (Json& part : value) spellNumbers(part);
  } else if (value.is_number_float()) {
    const double number = value.template get<double>();
    if (!std::isfinite(number)) value = std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }
}

// As a string of JSON; bytes that are no UTF-8 become U+FFFD.
inline std::string jsonText(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
  if (!plain) return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  out += text;
  out += '"';
  return out;
}

}  // namespace stepscope::storage
