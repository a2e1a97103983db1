// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/exports.h"

#include <QApplication>
#include <QClipboard>
#include <QFileInfo>
#include <QImage>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>

#include "views/common/tokens.h"
#include "views/common/view.h"

namespace stepscope {
namespace {

QImage picture(View& view) {
  constexpr double kScale = 2;
  QImage image(view.size() * kScale, QImage::Format_RGB32);
  image.setDevicePixelRatio(kScale);
  image.fill(Tokens::current().panel);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  view.drawPicture(painter);
  return image;
}

}  // namespace

QString writePicture(View& view, const QString& path) {
  const QString ending = QFileInfo(path).suffix().toLower();
  if (ending == u"png")
    return picture(view).save(path) ? QString() : QStringLiteral("picture '%1': cannot be written").arg(path);
  if (ending == u"svg") {
    QSvgGenerator generator;
    generator.setFileName(path);
    generator.setSize(view.size());
    generator.setViewBox(QRect(QPoint(), view.size()));
    generator.setResolution(view.logicalDpiY());  // letters as large as their places
    generator.setTitle(view.title());
    QPainter painter;
    if (!painter.begin(&generator)) return QStringLiteral("picture '%1': cannot be written").arg(path);
    view.drawPicture(painter);
    return {};
  }
  if (ending == u"pdf") {
    QPdfWriter writer(path);
    writer.setResolution(96);
    writer.setPageSize(QPageSize(QSizeF(view.size()) * 72.0 / 96.0, QPageSize::Point));
    writer.setPageMargins(QMarginsF());
    QPainter painter;
    if (!painter.begin(&writer)) return QStringLiteral("picture '%1': cannot be written").arg(path);
    view.drawPicture(painter);
    return {};
  }
  return QStringLiteral("picture '%1': ending '%2'; expected .png, .svg or .pdf").arg(path, ending);
}

void copyPicture(View& view) { QApplication::clipboard()->setImage(picture(view)); }

}  // namespace stepscope
