// SPDX-License-Identifier: GPL-3.0-or-later
// A uniform grid over axis-parallel boxes: which boxes meet a rectangle, in time proportional to the answer.
//
// Meant for many small boxes; a box is entered in every cell it touches and reported once per query. Immutable after
// build(); queries may run on any thread. At most 4 million cells are made: the cell size grows with the bounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepscope {

struct BoxF {
  float x = 0, y = 0, w = 0, h = 0;

  float right() const { return x + w; }
  float bottom() const { return y + h; }
  float centerX() const { return x + w / 2; }
  float centerY() const { return y + h / 2; }
  bool contains(float px, float py) const { return px >= x && px <= x + w && py >= y && py <= y + h; }
  bool meets(const BoxF& o) const { return x <= o.x + o.w && o.x <= x + w && y <= o.y + o.h && o.y <= y + h; }
  bool operator==(const BoxF&) const = default;
};

class GridIndex {
 public:
  // Copies the boxes; a box of negative size is never found.
  void build(std::vector<BoxF> boxes, float cellWidth, float cellHeight);

  const BoxF& bounds() const { return bounds_; }
  const BoxF& box(int index) const { return boxes_[static_cast<std::size_t>(index)]; }
  int size() const { return static_cast<int>(boxes_.size()); }

  // visit(index) for every box that meets `area`; stops early when it returns false.
  template <typename Visit>
  void query(const BoxF& area, Visit visit) const {
    if (columns_ == 0 || area.w < 0 || area.h < 0 || !bounds_.meets(area)) return;
    const int x0 = column(area.x), x1 = column(area.right());
    const int y0 = row(area.y), y1 = row(area.bottom());
    for (int cy = y0; cy <= y1; ++cy) {
      for (int cx = x0; cx <= x1; ++cx) {
        const std::size_t cell =
            static_cast<std::size_t>(cy) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(cx);
        for (std::uint32_t k = start_[cell]; k < start_[cell + 1]; ++k) {
          const BoxF& b = boxes_[entries_[k]];
          // A box in several cells is reported by the first of them that the query visits.
          if (std::max(column(b.x), x0) != cx || std::max(row(b.y), y0) != cy || !b.meets(area)) continue;
          if (!visit(static_cast<int>(entries_[k]))) return;
        }
      }
    }
  }

 private:
  int column(float x) const { return std::clamp(static_cast<int>((x - bounds_.x) / cellWidth_), 0, columns_ - 1); }
  int row(float y) const { return std::clamp(static_cast<int>((y - bounds_.y) / cellHeight_), 0, rows_ - 1); }

  std::vector<BoxF> boxes_;
  BoxF bounds_;
  float cellWidth_ = 1, cellHeight_ = 1;
  int columns_ = 0, rows_ = 0;
  std::vector<std::uint32_t> start_, entries_;
};

}  // namespace stepscope
