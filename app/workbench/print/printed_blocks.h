// SPDX-License-Identifier: GPL-3.0-or-later
// A document of a report as pieces for paper.
#pragma once

#include <vector>

#include "app/workbench/print/pages.h"
#include "app/workbench/print/paper.h"
#include "storage/report/document.h"

namespace stepscope::print {

inline constexpr std::size_t kMostRows = 100;  // of what other reports keep folded: paper has no search

// The document may go; the pieces hold what they draw.
std::vector<Piece> documentPieces(const Paper& paper, const storage::doc::Document& document);

}  // namespace stepscope::print
