// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/phase_strip.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/pass_stages.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr double kGap = 9;  // least distance of two names

// A pass without its phase, which is the next one that is named.
QString nameOf(const QString& stop) { return format::visible(stop.section('/', PassStages::isPass(stop) ? 1 : 0)); }
}  // namespace

QStringList differenceWords(int added, int removed, int changed) {
  QStringList words;
  for (const auto& [sign, count] : {std::pair("+", added), std::pair("−", removed), std::pair("±", changed)})
    if (count > 0) words << QString::fromUtf8(sign) + format::count(count);
  return words.isEmpty() ? QStringList{QStringLiteral("±0")} : words;
}

PhaseStrip::PhaseStrip(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::TabFocus);
  setMouseTracking(true);
  setAccessibleName(QStringLiteral("Phases and passes of the build"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

QSize PhaseStrip::sizeHint() const { return {400, qRound(Metrics::current().unit * 3.3)}; }
QSize PhaseStrip::minimumSizeHint() const { return {120, sizeHint().height()}; }

void PhaseStrip::setStops(const QStringList& stops) {
  stops_ = stops;
  arrange();
  first_ = shown_ = std::min<int>(shown_, static_cast<int>(stops.size()) - 1);
  second_ = base_ = -1;
  update();
}

void PhaseStrip::setShown(const QString& stage, const QString& base) {
  shown_ = static_cast<int>(stops_.indexOf(stage));
  base_ = base.isEmpty() ? -1 : static_cast<int>(stops_.indexOf(base));
  if (std::minmax(shown_, base_) != std::minmax(first_, second_)) {
    first_ = shown_;
    second_ = base_;
  }
  update();
}

void PhaseStrip::setCounts(int added, int removed, int changed) {
  added_ = added;
  removed_ = removed;
  changed_ = changed;
  update();
}

void PhaseStrip::arrange() {
  const double margin = 0.8 * Metrics::current().unit;
  const QFontMetricsF metrics(smallFont());
  std::vector<std::size_t> phases;  // places of them among the stops
  std::vector<double> widths;
  double all = 0;
  for (qsizetype i = 0; i < stops_.size(); ++i) {
    if (PassStages::isPass(stops_[i])) continue;
    phases.push_back(static_cast<std::size_t>(i));
    widths.push_back(metrics.horizontalAdvance(format::visible(stops_[i])));
    all += widths.back();
  }
  const std::size_t count = phases.size();
  places_.assign(static_cast<std::size_t>(stops_.size()), width() / 2.0);
  unnamed_.clear();
  if (count < 2) return;
  // Stops stand under the middle of their names, with equal gaps between the names: all of them fit into less than equal
  // steps would need. In a strip that is narrower still the steps are equal, and some names stand in the tooltip alone.
  const double gap = (width() - 2 * margin - all) / static_cast<double>(count - 1);
  double x = margin;
  const double left = margin + widths.front() / 2, right = width() - margin - widths.back() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    places_[phases[i]] =
        gap >= kGap ? x + widths[i] / 2 : left + static_cast<double>(i) / static_cast<double>(count - 1) * (right - left);
    x += widths[i] + gap;
  }
  double end = -1e9;
  for (std::size_t i = 0; i < count; ++i) {
    const double begin = places_[phases[i]] - widths[i] / 2;
    if (begin < end + kGap) {
      unnamed_ << stops_[static_cast<qsizetype>(phases[i])];
    } else {
      end = begin + widths[i];
    }
  }
  // Passes share the way from the phase before to their own.
  for (std::size_t i = 1; i < count; ++i) {
    const double from = places_[phases[i - 1]], to = places_[phases[i]];
    const auto steps = static_cast<double>(phases[i] - phases[i - 1]);
    for (std::size_t k = phases[i - 1] + 1; k < phases[i]; ++k)
      places_[k] = from + (to - from) * static_cast<double>(k - phases[i - 1]) / steps;
  }
}

void PhaseStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrange();
}

void PhaseStrip::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange || event->type() == QEvent::ApplicationFontChange) arrange();
}

QPointF PhaseStrip::stop(int i) const { return {places_[static_cast<std::size_t>(i)], 1.05 * Metrics::current().unit}; }

int PhaseStrip::stopAt(QPointF p) const {
  int best = -1;
  double least = 1e9;
  for (int i = 0; i < stops_.size(); ++i) {
    const double d = std::abs(stop(i).x() - p.x());
    if (d < least) {
      least = d;
      best = i;
    }
  }
  return best;
}

void PhaseStrip::paintEvent(QPaintEvent*) {
  const Tokens& t = Tokens::current();
  const double unit = Metrics::current().unit;
  QPainter p(this);
  p.setRenderHint(QPainter::Antialiasing);
  p.fillRect(rect(), t.raised);
  p.setPen(t.border);
  p.drawLine(QPointF(0, 0.5), QPointF(width(), 0.5));
  if (stops_.isEmpty()) return;
  const int count = static_cast<int>(stops_.size());
  p.setPen(QPen(t.border, 2, Qt::SolidLine, Qt::RoundCap));
  p.drawLine(stop(0), stop(count - 1));
  if (shown_ >= 0 && base_ >= 0) {
    p.setPen(QPen(t.accent, 3, Qt::SolidLine, Qt::RoundCap));
    p.drawLine(stop(base_), stop(shown_));
  }
  // Names where they fit; those of the shown ones always, and first.
  p.setFont(smallFont());
  const QFontMetricsF metrics(p.font());
  std::vector<int> order;
  for (const int i : {shown_, base_, hovered_}) {
    if (i >= 0 && i < count) order.push_back(i);
  }
  for (int i = 0; i < count; ++i) order.push_back(i);
  std::vector<std::pair<double, double>> taken;
  std::vector<char> done(static_cast<std::size_t>(count), 0);
  for (const int i : order) {
    if (done[static_cast<std::size_t>(i)] != 0) continue;
    done[static_cast<std::size_t>(i)] = 1;
    const QPointF at = stop(i);
    const bool active = i == shown_ || i == base_;
    p.setPen(QPen(active ? t.accent : i == hovered_ ? t.text : t.edge, 1.5));
    p.setBrush(i == shown_ ? t.accent : t.raised);
    const bool pass = PassStages::isPass(stops_[i]);
    const double radius = active ? 4.5 : pass ? 2 : 3.5;
    p.drawEllipse(at, radius, radius);
    if (pass && !active && i != hovered_) continue;
    const QString name = textOf(i);
    const double width = metrics.horizontalAdvance(name);
    const double x = std::clamp(at.x() - width / 2, 4.0, std::max(4.0, this->width() - width - 4));
    const bool free = std::none_of(taken.begin(), taken.end(),
                                   [&](const auto& o) { return x < o.second + kGap - 1 && x + width > o.first - kGap + 1; });
    if (!free) continue;
    taken.emplace_back(x, x + width);
    p.setPen(active ? t.text : t.muted);
    p.drawText(QPointF(x, 2.65 * unit), name);
  }
  if (shown_ >= 0 && base_ >= 0 && added_ >= 0) {
    const QStringList parts = differenceWords(added_, removed_, changed_);
    double total = -8;
    for (const QString& text : parts) total += metrics.horizontalAdvance(text) + 8;
    double x = (stop(base_).x() + stop(shown_).x()) / 2 - total / 2;
    p.setPen(Qt::NoPen);
    p.setBrush(t.raised);
    p.drawRect(QRectF(x - 2, stop(0).y() - 8, total + 4, 16));
    for (const QString& text : parts) {
      p.setPen(text[0] == '+' ? t.added : text[0] == QChar(0x2212) ? t.removed : t.changed);
      p.drawText(QPointF(x, stop(0).y() + metrics.ascent() / 2 - 1), text);
      x += metrics.horizontalAdvance(text) + 8;
    }
  }
  if (hasFocus()) {
    p.setPen(t.accent);
    p.setBrush(Qt::NoBrush);
    p.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  }
}

void PhaseStrip::choose(int first, int second) {
  if (first < 0 || first >= stops_.size() || second >= stops_.size()) return;
  first_ = first;
  second_ = second == first ? -1 : second;
  emit chosen(stops_[std::max(first_, second_)], second_ < 0 ? QString() : stops_[std::min(first_, second_)]);
}

// Which of both is the base does not follow from the dots alone.
QString PhaseStrip::textOf(int stop) const {
  const QString name = nameOf(stops_[stop]);
  return base_ < 0 || shown_ < 0 ? name
         : stop == base_         ? QStringLiteral("from %1").arg(name)
         : stop == shown_        ? QStringLiteral("to %1").arg(name)
                                 : name;
}

void PhaseStrip::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const int i = stopAt(event->position());
  if (event->modifiers() & Qt::ShiftModifier) {
    choose(first_ < 0 ? i : first_, i);
  } else {
    choose(i, second_);
  }
}

void PhaseStrip::mouseMoveEvent(QMouseEvent* event) {
  hovered_ = stopAt(event->position());
  update();
}

void PhaseStrip::leaveEvent(QEvent*) {
  hovered_ = -1;
  update();
}

void PhaseStrip::keyPressEvent(QKeyEvent* event) {
  const int step = event->key() == Qt::Key_Left ? -1 : event->key() == Qt::Key_Right ? 1 : 0;
  if (event->key() == Qt::Key_Escape && base_ >= 0) {
    choose(first_, -1);
  } else if (step == 0) {
    QWidget::keyPressEvent(event);
  } else if (event->modifiers() & Qt::ShiftModifier) {
    choose(first_, std::clamp((second_ < 0 ? first_ : second_) + step, 0, static_cast<int>(stops_.size()) - 1));
  } else {
    choose(std::clamp(first_ + step, 0, static_cast<int>(stops_.size()) - 1), second_);
  }
}

bool PhaseStrip::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const int i = stopAt(help->pos());
    if (i >= 0) {
      const QString& stop = stops_[i];
      const QString what =
          PassStages::isPass(stop)
              ? QStringLiteral("Graph after pass “%1” of “%2”.").arg(nameOf(stop), format::visible(stop.section('/', 0, 0)))
              : QStringLiteral("Graph after phase “%1”.").arg(nameOf(stop));
      QToolTip::showText(
          help->globalPos(),
          what + ' ' +
              QStringLiteral("Click shows it; Shift+click shows what changed from the earlier to the later of it "
                             "and the shown one."),
          this);
    }
    return true;
  }
  return QWidget::event(event);
}

}  // namespace stepscope
