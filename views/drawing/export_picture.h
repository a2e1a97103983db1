// SPDX-License-Identifier: GPL-3.0-or-later
// Writes what a function paints as SVG, PNG or PDF, by the file's extension.
#pragma once

#include <QSizeF>
#include <QString>
#include <functional>

class QPainter;

namespace stepscope {

// `size` in pixels at 100 %. PNG is painted at twice that, less where the picture would exceed 16,000 pixels or 256 MB.
// Returns an empty string, or the reason: "picture 'x.bmp': unknown extension; expected .svg, .png or .pdf".
QString exportPicture(const QString& path, QSizeF size, const QString& title, const std::function<void(QPainter&)>& paint);

}  // namespace stepscope
