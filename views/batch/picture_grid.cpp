// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/picture_grid.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <limits>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr std::size_t kMostPictures = 64;
constexpr std::int64_t kMostSide = 1024;
}  // namespace

bool isPictures(const std::vector<std::int64_t>& dims) {
  return dims.size() == 4 && (dims[1] == 1 || dims[1] == 3) && dims[2] > 1 && dims[3] > 1 && dims[2] <= kMostSide &&
         dims[3] <= kMostSide;
}

std::vector<QImage> makePictures(const TensorValues& pixels, std::size_t most) {
  std::vector<QImage> pictures;
  const auto& extent = pixels.extent();
  if (!isPictures(extent)) return pictures;
  const std::int64_t channels = extent[1], h = extent[2], w = extent[3], plane = h * w, sample = channels * plane;
  const std::int64_t whole = std::min({static_cast<std::int64_t>(most), extent[0], pixels.count() / sample});
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::int64_t i = 0; i < whole * sample; ++i) {
    const double x = pixels.at(i);
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  const double span = high > low ? high - low : 1;
  const QRgb loud = Tokens::current().number.rgb();
  for (std::int64_t n = 0; n < whole; ++n) {
    QImage picture(static_cast<int>(w), static_cast<int>(h), QImage::Format_RGB32);
    for (std::int64_t i = 0; i < plane; ++i) {
      int level[3] = {0, 0, 0};
      bool finite = true;
      for (std::int64_t c = 0; c < 3; ++c) {
        const double x = pixels.at(n * sample + (channels == 1 ? 0 : c) * plane + i);
        finite = finite && std::isfinite(x);
        if (finite) level[c] = static_cast<int>(std::clamp(255 * (x - low) / span, 0.0, 255.0));
      }
      picture.setPixel(static_cast<int>(i % w), static_cast<int>(i / w), finite ? qRgb(level[0], level[1], level[2]) : loud);
    }
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

PictureGrid::PictureGrid(QWidget* parent) : QWidget(parent) {
  setAccessibleName(QStringLiteral("Images of the batch"));
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void PictureGrid::set(const TensorValues& pixels, TensorValues labels, int worst) {
  pictures_ = makePictures(pixels, kMostPictures);
  labels_ = std::move(labels);
  worst_ = worst;
  updateGeometry();
  update();
}

QSize PictureGrid::cell() const {
  const int unit = Metrics::current().unit;
  const int side = pictures_.empty() ? 4 * unit : std::clamp(pictures_[0].height(), 4 * unit, 8 * unit);
  const int wide = pictures_.empty()
                       ? side
                       : std::clamp(side * pictures_[0].width() / std::max(1, pictures_[0].height()), 2 * unit, 12 * unit);
  return {wide, side};
}

int PictureGrid::columns(int width) const {
  const Metrics m = Metrics::current();
  return std::max(1, (width - m.padding) / (cell().width() + m.unit / 2));
}

int PictureGrid::heightForWidth(int width) const {
  const Metrics m = Metrics::current();
  const int rows = (pictures() + columns(width) - 1) / columns(width);
  return m.padding + rows * (cell().height() + qRound(1.7 * m.unit));
}

QSize PictureGrid::sizeHint() const { return {20 * Metrics::current().unit, heightForWidth(20 * Metrics::current().unit)}; }

QString PictureGrid::caption(int sample) const {
  const QString number = labels_.count() > sample ? labels_.text(sample) : QString();
  return sample == worst_ ? (number.isEmpty() ? QStringLiteral("worst") : QStringLiteral("%1, worst").arg(number)) : number;
}

void PictureGrid::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  const QSize size = cell();
  const int across = columns(width());
  painter.setFont(smallFont());
  for (int i = 0; i < pictures(); ++i) {
    const QRect place(m.padding + i % across * (size.width() + m.unit / 2),
                      m.padding / 2 + i / across * (size.height() + qRound(1.7 * m.unit)), size.width(), size.height());
    painter.drawImage(place, pictures_[static_cast<std::size_t>(i)]);
    painter.setPen(QPen(i == worst_ ? t.error : t.border, i == worst_ ? 2 : 1));
    painter.drawRect(place.adjusted(0, 0, -1, -1));
    painter.setPen(i == worst_ ? t.error : t.muted);
    painter.drawText(QRect(place.left(), place.bottom() + 1, place.width(), qRound(1.4 * m.unit)), Qt::AlignCenter,
                     format::elided(caption(i), painter.fontMetrics(), place.width()));
  }
}

bool PictureGrid::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const Metrics m = Metrics::current();
  const int column = (help->pos().x() - m.padding) / (cell().width() + m.unit / 2),
            row = (help->pos().y() - m.padding / 2) / (cell().height() + qRound(1.7 * m.unit));
  const int sample = row * columns(width()) + column;
  const bool there = help->pos().x() >= m.padding && column < columns(width()) && sample >= 0 && sample < pictures();
  const QString label =
      there && labels_.count() > sample ? QStringLiteral(", label %1").arg(labels_.text(sample)) : QString();
  QToolTip::showText(help->globalPos(), there ? QStringLiteral("Sample %1%2").arg(sample).arg(label) : QString(), this);
  return true;
}

}  // namespace stepscope
