// SPDX-License-Identifier: GPL-3.0-or-later
// A chart of a report on paper, as vectors.
#pragma once

#include <QRectF>

#include "app/workbench/print/paper.h"
#include "storage/report/drawing.h"

class QPainter;

namespace stepscope::print {

// Its height at this width, both in units of the device.
double heightOf(const storage::doc::Drawing& drawing, double width);
void drawDrawing(QPainter& painter, const Paper& paper, const storage::doc::Drawing& drawing, QPointF upperLeft,
                 double width);

}  // namespace stepscope::print
