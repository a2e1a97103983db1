#include "engine/data/shown_name.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

constexpr std::size_t kShownBytes = 120;

}  // namespace

std::string shownName(std::string_view name) {
  std::string shown;
  for (const char c : name.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  if (name.size() > kShownBytes) shown += "…";
  return shown;
}

}  // namespace stepscope
