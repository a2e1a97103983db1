// Extents of a shape as messages have them: the text of a number, or of a symbol ("batch", "sequence+1").
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepscope {

// Nothing for a symbol.
inline std::optional<std::int64_t> extentOf(std::string_view dim) {
  std::int64_t extent = 0;
  const auto [end, error] = std::from_chars(dim.data(), dim.data() + dim.size(), extent);
  if (error != std::errc() || end != dim.data() + dim.size() || extent < 0) return std::nullopt;
  return extent;
}

}  // namespace stepscope
