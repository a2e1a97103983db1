// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/export_picture.h"

#include <QFileInfo>
#include <QImage>
#include <QImageWriter>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr double kLongestSide = 16'000;
constexpr double kMostPixels = 64e6;
}  // namespace

QString exportPicture(const QString& path, QSizeF size, const QString& title, const std::function<void(QPainter&)>& paint) {
  const QString what = QStringLiteral("picture '%1': ").arg(format::visible(path));
  if (size.isEmpty()) return what + QStringLiteral("nothing is shown; open a model first");
  const QString extension = QFileInfo(path).suffix().toLower();
  if (extension != u"svg" && extension != u"png" && extension != u"pdf") {
    return what + QStringLiteral("unknown extension '%1'; expected svg, png or pdf").arg(format::visible(extension));
  }
  // A half-written picture never replaces a good one.
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly)) return what + file.errorString() + QStringLiteral("; expected a writable place");
  if (extension == u"png") {
    const double scale = std::min({2.0, kLongestSide / size.width(), kLongestSide / size.height(),
                                   std::sqrt(kMostPixels / (size.width() * size.height()))});
    QImage image((size * scale).toSize().expandedTo({1, 1}), QImage::Format_ARGB32_Premultiplied);
    if (image.isNull())
      return what +
             QStringLiteral("not enough memory for %1 × %2 pixels").arg(size.width() * scale).arg(size.height() * scale);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.scale(scale, scale);
    paint(painter);
    painter.end();
    QImageWriter writer(&file, "png");
    if (!writer.write(image)) return what + writer.errorString();
  } else if (extension == u"svg") {
    QSvgGenerator svg;
    svg.setOutputDevice(&file);
    svg.setSize(size.toSize());
    svg.setViewBox(QRectF(QPointF(), size));
    svg.setTitle(title);
    QPainter painter(&svg);
    paint(painter);
  } else {
    QPdfWriter pdf(&file);
    pdf.setTitle(title);
    pdf.setResolution(72);
    // A page of PDF is at most 14,400 points long.
    const double scale = std::min({1.0, 14'400 / size.width(), 14'400 / size.height()});
    pdf.setPageSize(QPageSize(size * scale, QPageSize::Point, {}, QPageSize::ExactMatch));
    pdf.setPageMargins({});
    QPainter painter(&pdf);
    painter.scale(scale, scale);
    paint(painter);
  }
  if (!file.commit()) return what + file.errorString();
  return {};
}

}  // namespace stepscope
