// SPDX-License-Identifier: GPL-3.0-or-later
// A table of a report on paper: columns as wide as what they hold, long texts in several lines, a piece for each row.
#pragma once

#include <vector>

#include "app/workbench/print/pages.h"
#include "app/workbench/print/paper.h"
#include "storage/report/document.h"

namespace stepscope::print {

// Rows of a short table stand together, as do the first ones of a longer table.
std::vector<Piece> tablePieces(const Paper& paper, const storage::doc::Table& table);

// Room for columns that want `wanted`, of which `least` at least, in `width`: as wanted where that fits; else those that can
// give, from the widest.
std::vector<double> sharedWidths(const std::vector<double>& wanted, const std::vector<double>& least, double width);

}  // namespace stepscope::print
