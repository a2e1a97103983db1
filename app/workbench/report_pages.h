// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of a printed report: no heading parts from what it heads.
#pragma once

#include <QTextDocument>

class QPagedPaintDevice;

namespace stepscope {

// Lays the document out on the pages of this device and breaks them so that a heading and the line under it stand on the
// page of their chart, of their table where it is short, else of its first rows; charts next to each other stay so, and a
// legend stays under its chart. A row of a table stands on one page. What is higher than a page breaks where it may.
void layOutPages(QTextDocument& document, QPagedPaintDevice& device);

// Draws the pages laid out, each with its number and, at its foot, what it is about. False where the device cannot be
// written.
bool drawPages(QTextDocument& document, QPagedPaintDevice& device, const QString& foot = {});

}  // namespace stepscope
