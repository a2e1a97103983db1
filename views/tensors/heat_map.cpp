// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/heat_map.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr int kMostCells = 512;  // per direction: finer than this the eye sees nothing in a panel
}

HeatMap::HeatMap(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName(QStringLiteral("Heat map"));
}

void HeatMap::show(const TensorTable& table) {
  table_ = &table;
  low_ = -table.values().largest();
  high_ = table.values().largest();
  draw();
}

void HeatMap::setRange(double low, double high) {
  low_ = low;
  high_ = high;
  draw();
}

QRect HeatMap::area() const {
  const int pad = Metrics::current().padding;
  return rect().adjusted(pad, pad, -pad, -qRound(2.2 * Metrics::current().unit));
}

void HeatMap::draw() {
  image_ = QImage();
  if (!table_ || table_->rowCount() == 0) {
    update();
    return;
  }
  const int rows = table_->rowCount(), columns = table_->columnCount();
  const int h = std::min(rows, kMostCells), w = std::min(columns, kMostCells);
  const Tokens& t = Tokens::current();
  image_ = QImage(w, h, QImage::Format_RGB32);
  // Two ramps of 256 colours: mixing per element would cost more than reading it.
  std::array<QRgb, 256> warm, cold;
  for (int i = 0; i < 256; ++i) {
    warm[static_cast<std::size_t>(i)] = mixed(t.heatHigh, t.panel, i / 255.0).rgb();
    cold[static_cast<std::size_t>(i)] = mixed(t.negative, t.panel, i / 255.0).rgb();
  }
  const double top = std::max(std::abs(low_), std::abs(high_));
  const TensorValues& v = table_->values();
  const auto& extent = v.extent();
  std::int64_t rowStride = 0, columnStride = 0, stride = 1;
  for (auto i = static_cast<int>(extent.size()) - 1; i >= 0; --i) {
    if (i == table_->slice().rowAxis) rowStride = stride;
    if (i == table_->slice().columnAxis) columnStride = stride;
    stride *= extent[static_cast<std::size_t>(i)];
  }
  for (int y = 0; y < h; ++y) {
    const int r0 = static_cast<int>(static_cast<std::int64_t>(y) * rows / h),
              r1 = std::max(r0 + 1, static_cast<int>(static_cast<std::int64_t>(y + 1) * rows / h));
    for (int x = 0; x < w; ++x) {
      const int c0 = static_cast<int>(static_cast<std::int64_t>(x) * columns / w),
                c1 = std::max(c0 + 1, static_cast<int>(static_cast<std::int64_t>(x + 1) * columns / w));
      double shown = 0;
      bool loud = false;
      for (int r = r0; r < r1; ++r) {
        for (int c = c0; c < c1; ++c) {
          const double e = v.at(r * rowStride + c * columnStride);
          if (!std::isfinite(e)) loud = true;
          if (std::abs(e) > std::abs(shown)) shown = e;
        }
      }
      if (loud) {
        image_.setPixel(x, y, t.number.rgb());
        continue;
      }
      shown = std::clamp(shown, low_, high_);
      const auto level = static_cast<std::size_t>(top > 0 ? std::min(255.0, 255 * std::abs(shown) / top) : 0);
      image_.setPixel(x, y, shown < 0 ? cold[level] : warm[level]);
    }
  }
  update();
}

void HeatMap::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  const QRect a = area();
  if (image_.isNull()) return;
  painter.drawImage(a, image_);
  painter.setPen(t.border);
  painter.drawRect(a.adjusted(-1, -1, 0, 0));
  const double top = std::max(std::abs(low_), std::abs(high_));
  const QRect bar(a.left(), a.bottom() + 8, a.width() / 3, qRound(0.6 * Metrics::current().unit));
  for (int x = 0; x < bar.width(); ++x) {
    const double share = 2.0 * x / std::max(1, bar.width()) - 1;
    painter.fillRect(bar.left() + x, bar.top(), 1, bar.height(),
                     mixed(share < 0 ? t.negative : t.heatHigh, t.panel, std::abs(share)));
  }
  painter.setFont(smallFont());
  painter.setPen(t.muted);
  painter.drawText(QRect(bar.right() + 8, bar.top() - 4, a.width(), bar.height() + 8), Qt::AlignVCenter,
                   QStringLiteral("−%1 … %1, 0 is the panel's colour").arg(format::number(top, 3)));
}

void HeatMap::mouseMoveEvent(QMouseEvent* event) {
  const QRect a = area();
  if (image_.isNull() || !a.contains(event->pos())) return;
  const int row =
      static_cast<int>(static_cast<std::int64_t>(event->pos().y() - a.top()) * table_->rowCount() / std::max(1, a.height()));
  const int column = static_cast<int>(static_cast<std::int64_t>(event->pos().x() - a.left()) * table_->columnCount() /
                                      std::max(1, a.width()));
  const QString text = table_->index(row, column).data(Qt::ToolTipRole).toString();
  setToolTip(text);
  emit hovered(text);
}

void HeatMap::resizeEvent(QResizeEvent* event) { QWidget::resizeEvent(event); }

}  // namespace stepscope
