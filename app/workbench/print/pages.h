// SPDX-License-Identifier: GPL-3.0-or-later
// A column of pieces on pages: no heading parts from what it heads, no row of a table from itself, and a table that goes on
// begins with its heads again.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

class QPainter;

namespace stepscope::print {

// What stands on one page as a whole.
struct Piece {
  double height = 0;
  double before = 0;      // free above it, but for the top of a page
  bool withNext = false;  // stands on the page of the one after it
  std::function<void(QPainter& painter, double top)> draw;
  std::shared_ptr<const Piece> head;  // drawn above it where it is the first of a page
};

struct PlacedPiece {
  const Piece* piece = nullptr;
  double top = 0;
};
using PlacedPage = std::vector<PlacedPiece>;

// Pieces that belong together go to the next page together where they fit on one; else they part where they may. A piece
// higher than a page has one of its own. The pieces must outlive the pages.
std::vector<PlacedPage> pagesOf(std::span<const Piece> pieces, double height);

}  // namespace stepscope::print
