// How reports write quantities, and how they show names from files.
//
// Names are hostile text: every name passes through html() (or csvCell(), or the JSON encoder) and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepscope::storage {

std::string timeText(double ns);            // 123 ns · 45.67 µs · 123.4 ms · 12.34 s
std::string bytesText(std::int64_t bytes);  // 123 B · 12.3 KiB · 1.24 GiB
std::string countText(std::int64_t value);  // 1,234,567
std::string numberText(double value);       // five significant digits; NaN, ∞
std::string percentText(double ratio);      // 0.1234 → 12.3 %; <0.1 % for a little more than nothing
std::string dateText(std::int64_t unixNs);  // 2026-01-31 12:34 UTC

// Valid UTF-8 with control characters, zero-width characters and direction marks made visible as ⟨U+202E⟩.
std::string visibleText(std::string_view text);
// As visibleText, shortened in the middle to at most `limit` characters.
std::string elided(std::string_view text, std::size_t limit = 120);
// Element contents and attribute values: visibleText with & < > " ' escaped.
std::string html(std::string_view text);
std::string htmlElided(std::string_view text, std::size_t limit);
// One field of RFC 4180. Text that a spreadsheet would run as a formula gets a leading apostrophe.
std::string csvCell(std::string_view text);

std::string fileNameOf(std::string_view path);  // without folders: a report names no home directory
// A value that is an absolute path is shown as its file name.
std::string withoutFolders(std::string_view value);
// An operator's label without the domain that is ours: "stepscope.Product 'x'" is "Product 'x'", others keep theirs.
std::string_view withoutOwnDomain(std::string_view label);

}  // namespace stepscope::storage
