// SPDX-License-Identifier: GPL-3.0-or-later
// What is written on a box of the memory map, and where. GUI thread.
#pragma once

#include <QRectF>
#include <QString>
#include <vector>

#include "views/drawing/text_cache.h"
#include "views/memory/memory_model.h"

namespace stepscope {

// The most telling name of a buffer that has room: what is cut in the middle names nothing. The end of a path says which one
// it is, and where even that is too long, the operator that writes it; empty where that has no room either.
QString boxName(const MemoryModel& model, const snapshot::Buffer& buffer, TextCache& text, double room);

struct BoxWords {
  QString name, bytes;  // empty: no room
  double x = 0;         // where the name begins
  double bytesX = 0;
  double width = 0;  // of both
};
// The place in a box where the most of the name has room between the upright lines at `lines`; the first such place.
BoxWords boxWords(const MemoryModel& model, const snapshot::Buffer& buffer, TextCache& text, const QRectF& box,
                  std::vector<double> lines);

// Moved sideways, within `area`, until `room` is free between it and what stands upright at `x`; as it is where there is no
// such place.
QRectF besideMark(const QRectF& words, double x, double room, const QRectF& area);

}  // namespace stepscope
