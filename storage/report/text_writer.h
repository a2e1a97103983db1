// A document as plain text, for terminals, tickets and diffs: tables aligned, names whole, charts in words.
// Control characters of names are visible, so it is safe to show.
#pragma once

#include <string>

#include "storage/report/document.h"

namespace stepscope::storage {

std::string plainTextOf(const doc::Document& document);
std::string plainTextOf(const doc::Table& table);

}  // namespace stepscope::storage
