#include "engine/snapshot/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace stepscope {
namespace {

// Length of the valid sequence at `i`, or 0.
std::size_t sequenceAt(const std::string& text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 && lead < 0xf5   ? 4
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                                                           : 0;
  if (length == 0 || i + length > text.size()) return 0;
  std::uint32_t point = lead & (0xffu >> (length + 1));
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte(i + k) & 0x3fu);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return overlong || surrogate || point > 0x10ffff ? 0 : length;
}

}  // namespace

std::string toUtf8(const std::string& text) {
  std::string result;
  bool changed = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequenceAt(text, i);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      changed = true;
      ++i;
    } else {
      result.append(text, i, length);
      i += length;
    }
  }
  return changed ? result : text;
}

}  // namespace stepscope
