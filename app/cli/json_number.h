// How numbers stand in JSON.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

namespace stepscope::cli {

// NaN and infinities, which JSON lacks, become the strings "NaN", "Infinity" and "-Infinity".
inline nlohmann::json numberJson(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

}  // namespace stepscope::cli
