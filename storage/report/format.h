// How reports show dates, names from files and paths. Quantities: engine/snapshot/units.h.
//
// Names are hostile text: a writer passes every one of them through html() or visibleText(), or the encoder of CSV or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepscope::storage {

std::string dateText(std::int64_t unixNs);  // 2026-01-31 12:34 UTC

// Valid UTF-8 with control characters, zero-width characters and direction marks made visible as ⟨U+202E⟩.
std::string visibleText(std::string_view text);
// As visibleText, shortened in the middle to at most `limit` characters.
std::string elided(std::string_view text, std::size_t limit = 120);
// Element contents and attribute values: visibleText with & < > " ' escaped.
std::string html(std::string_view text);

std::string fileNameOf(std::string_view path);  // without folders: a report names no home directory
// A value that is an absolute path is shown as its file name.
std::string withoutFolders(std::string_view value);
// An operator's label without the domain that is ours: "stepscope.Product 'x'" is "Product 'x'", others keep theirs.
std::string_view withoutOwnDomain(std::string_view label);

}  // namespace stepscope::storage
