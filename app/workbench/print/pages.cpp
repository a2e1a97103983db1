// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/print/pages.h"

namespace stepscope::print {
namespace {

double headHeight(const Piece& piece) { return piece.head ? piece.head->height : 0; }

class Filler {
 public:
  explicit Filler(double height) : height_(height), pages_(1) {}

  bool fits(std::span<const Piece> group) const {
    double end = end_;
    bool first = pages_.back().empty();
    for (const Piece& piece : group) {
      end += first ? headHeight(piece) : piece.before;
      first = false;
      end += piece.height;
    }
    return end <= height_;
  }
  bool fitsOnAPage(std::span<const Piece> group) const { return Filler(height_).fits(group); }
  void nextPage() {
    if (pages_.back().empty()) return;
    pages_.emplace_back();
    end_ = 0;
  }
  void put(const Piece& piece) {
    if (!pages_.back().empty()) {
      end_ += piece.before;
    } else if (piece.head) {
      pages_.back().push_back({piece.head.get(), 0});
      end_ = piece.head->height;
    }
    pages_.back().push_back({&piece, end_});
    end_ += piece.height;
  }
  std::vector<PlacedPage> take() && {
    if (pages_.back().empty() && pages_.size() > 1) pages_.pop_back();
    return std::move(pages_);
  }

 private:
  double height_;
  double end_ = 0;  // of the page that is filled
  std::vector<PlacedPage> pages_;
};

}  // namespace

std::vector<PlacedPage> pagesOf(std::span<const Piece> pieces, double height) {
  Filler filler(height);
  for (std::size_t i = 0; i < pieces.size();) {
    std::size_t end = i + 1;
    while (end < pieces.size() && pieces[end - 1].withNext) ++end;
    const auto group = pieces.subspan(i, end - i);
    if (!filler.fits(group) && filler.fitsOnAPage(group)) filler.nextPage();
    for (const Piece& piece : group) {
      if (!filler.fits({&piece, 1})) filler.nextPage();
      filler.put(piece);
    }
    i = end;
  }
  return std::move(filler).take();
}

}  // namespace stepscope::print
