// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/memory_scale.h"

#include <algorithm>

namespace stepscope {
namespace {
constexpr double kHeadroom = 1.1;         // above the highest address: room for labels
constexpr double kPersistentShare = 0.3;  // of the height, at most: the arena is what the plan decides
}  // namespace

double MemoryScale::squeezeFor(const MemoryModel& model) {
  const double below = static_cast<double>(model.persistent()), arena = static_cast<double>(model.top()) - below;
  const double share = kPersistentShare / (1 - kPersistentShare) * arena * kHeadroom;
  return arena > 0 && below > share ? share / below : 1;
}

double MemoryScale::toUnits(double bytes) const {
  return bytes <= persistent ? bytes * squeeze : persistent * squeeze + bytes - persistent;
}

double MemoryScale::toBytes(double units) const {
  return units <= persistent * squeeze ? units / squeeze : persistent + units - persistent * squeeze;
}

double MemoryScale::unitsTop(const MemoryModel& model) const {
  return std::max(1.0, toUnits(static_cast<double>(model.top())) * kHeadroom);
}

QRectF MemoryScale::rectOf(const MemoryBox& b) const {
  const double x0 = toX(b.first), x1 = toX(b.end), y0 = toY(static_cast<double>(b.high)),
               y1 = toY(static_cast<double>(b.low));
  const double gap = x1 - x0 > 4 ? 0.8 : 0, gapY = y1 - y0 > 4 ? 0.8 : 0;
  return {x0, y0 + gapY, std::max(1.0, x1 - x0 - gap), std::max(1.0, y1 - y0 - gapY)};
}

}  // namespace stepscope
