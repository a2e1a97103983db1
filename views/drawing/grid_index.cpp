// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/grid_index.h"

namespace stepscope {
namespace {
constexpr float kMaxCells = 4e6F;
}

void GridIndex::build(std::vector<BoxF> boxes, float cellWidth, float cellHeight) {
  boxes_ = std::move(boxes);
  columns_ = rows_ = 0;
  bounds_ = {};
  bool first = true;
  for (const BoxF& b : boxes_) {
    if (b.w < 0 || b.h < 0) continue;
    if (first) {
      bounds_ = b;
      first = false;
      continue;
    }
    const float right = std::max(bounds_.right(), b.right()), bottom = std::max(bounds_.bottom(), b.bottom());
    bounds_.x = std::min(bounds_.x, b.x);
    bounds_.y = std::min(bounds_.y, b.y);
    bounds_.w = right - bounds_.x;
    bounds_.h = bottom - bounds_.y;
  }
  if (first) return;
  cellWidth_ = std::max(1.0F, cellWidth);
  cellHeight_ = std::max(1.0F, cellHeight);
  while ((bounds_.w / cellWidth_ + 1) * (bounds_.h / cellHeight_ + 1) > kMaxCells) {
    cellWidth_ *= 2;
    cellHeight_ *= 2;
  }
  columns_ = static_cast<int>(bounds_.w / cellWidth_) + 1;
  rows_ = static_cast<int>(bounds_.h / cellHeight_) + 1;

  const auto forCells = [&](const BoxF& b, auto&& visit) {
    if (b.w < 0 || b.h < 0) return;
    for (int cy = row(b.y); cy <= row(b.bottom()); ++cy) {
      for (int cx = column(b.x); cx <= column(b.right()); ++cx) {
        visit(static_cast<std::size_t>(cy) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(cx));
      }
    }
  };
  start_.assign(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_) + 1, 0);
  for (const BoxF& b : boxes_) forCells(b, [&](std::size_t cell) { ++start_[cell + 1]; });
  for (std::size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
  entries_.resize(start_.back());
  std::vector<std::uint32_t> fill(start_.begin(), start_.end() - 1);
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    forCells(boxes_[i], [&](std::size_t cell) { entries_[fill[cell]++] = static_cast<std::uint32_t>(i); });
  }
}

}  // namespace stepscope
