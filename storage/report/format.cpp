#include "storage/report/format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>

namespace stepscope::storage {
namespace {

// Reads one code point; invalid bytes read as U+FFFD, one at a time.
char32_t nextCodePoint(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0; };
  const std::uint32_t first = byte(at);
  const int length = first < 0x80 ? 1 : first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 1) return text[at++];
  if (length == 0 || first >= 0xf5) {
    ++at;
    return 0xfffd;
  }
  char32_t point = first & (0x7fu >> length);
  for (int i = 1; i < length; ++i) {
    const std::uint32_t next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xc0) != 0x80) {
      ++at;
      return 0xfffd;
    }
    point = (point << 6) | (next & 0x3f);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kSmallest[static_cast<std::size_t>(length)] || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff) {
    ++at;
    return 0xfffd;
  }
  at += static_cast<std::size_t>(length);
  return point;
}

void append(std::string& out, char32_t point) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | (point >> 6));
  } else {
    if (point < 0x10000) {
      put(0xe0 | (point >> 12));
    } else {
      put(0xf0 | (point >> 18));
      put(0x80 | ((point >> 12) & 0x3f));
    }
    put(0x80 | ((point >> 6) & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

bool hidden(char32_t p) {
  return (p < 0x20 && p != '\n' && p != '\t') || (p >= 0x7f && p < 0xa0) || (p >= 0x200b && p <= 0x200f) ||
         (p >= 0x2028 && p <= 0x202e) || (p >= 0x2060 && p <= 0x206f) || p == 0xfeff || p == 0x061c || p == 0xad ||
         (p >= 0xe0000 && p <= 0xe007f);
}

std::string escapeEntities(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

std::string dateText(std::int64_t unixNs) {
  constexpr std::int64_t kLatest = std::int64_t{253402300799};  // the year 9999: the number may be anything
  const std::int64_t seconds = unixNs / 1'000'000'000;
  if (seconds < 0 || seconds > kLatest) return "unknown";
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string visibleText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t point = nextCodePoint(text, at);
    if (hidden(point))
      out += fmt::format("⟨U+{:04X}⟩", static_cast<std::uint32_t>(point));
    else
      append(out, point);
  }
  return out;
}

std::string elided(std::string_view text, std::size_t limit) {
  const std::string shown = visibleText(text);
  std::u32string points;
  for (std::size_t at = 0; at < shown.size();) points += nextCodePoint(shown, at);
  if (points.size() <= limit || limit < 3) return shown;
  const std::size_t head = (limit - 1) / 2;
  std::string out;
  for (std::size_t i = 0; i < head; ++i) append(out, points[i]);
  out += "…";
  for (std::size_t i = points.size() - (limit - 1 - head); i < points.size(); ++i) append(out, points[i]);
  return out;
}

std::string html(std::string_view text) { return escapeEntities(visibleText(text)); }

std::string fileNameOf(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string_view withoutOwnDomain(std::string_view label) {
  constexpr std::string_view kOwn = "stepscope.";
  return label.starts_with(kOwn) ? label.substr(kOwn.size()) : label;
}

std::string withoutFolders(std::string_view value) {
  const bool absolute =
      value.starts_with('/') || value.starts_with('~') || (value.size() > 2 && value[1] == ':' && value[2] == '\\');
  return absolute ? fileNameOf(value) : std::string(value);
}

}  // namespace stepscope::storage
