// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/icons.h"

#include <QHash>
#include <QIconEngine>
#include <QPainter>
#include <QSvgRenderer>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

const QHash<QString, const char*>& paths() {
  static const QHash<QString, const char*> kPaths = {
      {"open", "M2 13V4h4l2 2h6v7z"},
      {"run", "M5 3l8 5-8 5z"},
      {"runback", "M11 3L3 8l8 5z"},
      {"back", "M6 3L2 7l4 4M2 7h8a4 4 0 010 7H8"},
      {"step", "M10 3l4 4-4 4M14 7H6a4 4 0 000 7h2"},
      {"phase", "M3 3v10M13 3v10M5 8h6M9 6l2 2-2 2"},
      {"phaseback", "M3 3v10M13 3v10M5 8h6M7 6L5 8l2 2"},
      {"whole", "M3 8h8M8 4l4 4-4 4M14 3v10"},
      {"to", "M3 8h6M7 5l3 3-3 3M13 8h.01"},
      {"stop", "M4 4h8v8H4z"},
      {"options", "M3 4h10M3 8h10M3 12h10M6 3v2M10 7v2M5 11v2"},
      {"export", "M8 2v8M5 5l3-3 3 3M3 10v3h10v-3"},
      {"warning", "M8 2l6.5 11.5h-13zM8 6.5v3.5M8 12h.01"},
      {"menu", "M2.5 4.5h11M2.5 8h11M2.5 11.5h11"},
      {"layout", "M2.5 3h11v10h-11zM6 3v10M6 9h7.5"},
      {"search", "M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9M10.5 10.5L14 14"},
      {"close", "M4 4l8 8M12 4l-8 8"},
      {"refresh", "M13 8a5 5 0 11-1.5-3.6M13 2v3h-3"},
      {"copy", "M5.5 5.5h8v8h-8zM2.5 10.5v-8h8"},
      {"pin", "M6 2h4l-.5 4 2.5 3H4l2.5-3zM8 9v5"},
      {"eye", "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8M8 6a2 2 0 100 4 2 2 0 000-4"},
      {"file", "M4 2h5l3 3v9H4zM9 2v3h3"},
      {"plus", "M8 3v10M3 8h10"},
      {"minus", "M3 8h10"},
      {"left", "M10 3L5 8l5 5"},
      {"right", "M6 3l5 5-5 5"},
      {"more", "M3 8h.01M8 8h.01M13 8h.01"},
      {"save", "M3 3h8l2 2v8H3zM5 3v3h5V3M5 13V9h6v4"},
      {"check", "M3 8.5l3.5 3.5L13 4.5"},
      {"info", "M8 2a6 6 0 100 12A6 6 0 008 2M8 7.5V11M8 5h.01"},
      {"gpu", "M2 4h12v8H2zM5 6.5h3v3H5zM11 6.5v3M4 12v2M8 12v2M12 12v2"},
      {"model", "M3 3h4v3H3zM9 10h4v3H9zM5 6v5.5h4M9 3h4v3H9zM7 4.5h2"},
      {"memory", "M3 11V5h10v6zM5 5V3M8 5V3M11 5V3M5 13v-2M8 13v-2M11 13v-2"},
      {"break", "M8 3.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9"},
  };
  return kPaths;
}

class LineIconEngine : public QIconEngine {
 public:
  LineIconEngine(QString name, QColor colour) : name_(std::move(name)), colour_(colour) {}
  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override {
    const Tokens& t = Tokens::current();
    const QColor colour = mode == QIcon::Disabled ? t.faint
                          : colour_.isValid()     ? colour_
                          : state == QIcon::On    ? t.accent
                                                  : t.text;
    const double ratio = painter->device()->devicePixelRatioF();
    painter->drawPixmap(rect, iconPixmap(name_, colour, rect.width(), ratio));
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap pixmap(size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    paint(&painter, QRect(QPoint(), size), mode, state);
    return pixmap;
  }
  QIconEngine* clone() const override { return new LineIconEngine(*this); }

 private:
  QString name_;
  QColor colour_;
};

}  // namespace

QIcon icon(const QString& name) { return icon(name, QColor()); }
QIcon icon(const QString& name, const QColor& colour) { return QIcon(new LineIconEngine(name, colour)); }

QPixmap iconPixmap(const QString& name, const QColor& colour, int size, double ratio) {
  const auto it = paths().find(name);
  if (it == paths().end()) qFatal("icon '%s': unknown name", qPrintable(name));
  const QString svg = QStringLiteral(
                          "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='%1' fill='none' stroke='%2' "
                          "stroke-width='1.4' stroke-linecap='round' stroke-linejoin='round'/></svg>")
                          .arg(QLatin1String(*it), colour.name());
  QPixmap pixmap(qRound(size * ratio), qRound(size * ratio));
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  QSvgRenderer renderer(svg.toUtf8());
  renderer.render(&painter);
  painter.end();
  pixmap.setDevicePixelRatio(ratio);
  return pixmap;
}

QPixmap swatch(const QColor& colour, int size, double ratio) {
  QPixmap pixmap(qRound(size * ratio), qRound(size * ratio));
  pixmap.fill(Qt::transparent);
  pixmap.setDevicePixelRatio(ratio);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  painter.drawRoundedRect(QRectF(0, 0, size, size), 2, 2);
  return pixmap;
}

}  // namespace stepscope
