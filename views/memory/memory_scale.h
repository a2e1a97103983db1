// SPDX-License-Identifier: GPL-3.0-or-later
// Where instructions and addresses stand in a memory map: x = instructions, linear; y = addresses, with the persistent part
// below the arena squeezed. *Units* are the bytes of the arena and the squeezed ones below it. A value type.
#pragma once

#include <QRectF>

#include "views/memory/memory_model.h"

namespace stepscope {

struct MemoryScale {
  QRectF area;                        // of the plot, in pixels
  double viewBegin = 0, viewEnd = 1;  // shown instructions
  double low = 0, high = 1;           // shown addresses, in units
  double persistent = 0;              // bytes below the arena
  double squeeze = 1;                 // units per byte below the arena

  // Of a map in which the persistent part takes at most a fixed share of the height.
  static double squeezeFor(const MemoryModel& model);

  double toX(double instruction) const {
    return area.left() + (instruction - viewBegin) / (viewEnd - viewBegin) * area.width();
  }
  double toY(double bytes) const { return area.bottom() - (toUnits(bytes) - low) / (high - low) * area.height(); }
  double toUnits(double bytes) const;
  double toBytes(double units) const;
  double unitsAt(double y) const { return low + (area.bottom() - y) / area.height() * (high - low); }
  // All units of the model, and some room above for labels.
  double unitsTop(const MemoryModel& model) const;
  QRectF rectOf(const MemoryBox& box) const;
};

}  // namespace stepscope
