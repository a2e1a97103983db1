// SPDX-License-Identifier: GPL-3.0-or-later
// The ruler of the timeline: steps, ticks, and what is cut out of the axis.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/drawing/axis_ticks.h"
#include "views/timeline/timeline_canvas.h"

namespace stepscope {
namespace {

constexpr double kMarkApart = 7;       // pixels: marks of cuts that are closer are one
constexpr std::size_t kMostInTip = 8;  // cuts that are told one by one
constexpr double kSignHeight = 5;      // pixels

QString stepsWord(const TimelineModel& model, const TimelineCut& cut) {
  const std::vector<TimelineStep>& steps = model.steps();
  if (cut.step >= 0) return QStringLiteral("in step %1").arg(format::count(steps[static_cast<std::size_t>(cut.step)].step));
  const TimelineStep *before = nullptr, *after = nullptr;
  for (const TimelineStep& step : steps) {
    if (step.end <= cut.begin && (!before || step.end > before->end)) before = &step;
    if (step.begin >= cut.end && (!after || step.begin < after->begin)) after = &step;
  }
  return before && after
             ? QStringLiteral("between step %1 and step %2").arg(format::count(before->step), format::count(after->step))
             : QStringLiteral("outside of steps");
}

}  // namespace

QString tickText(double ns, double apart, double last) {
  if (ns == 0) return QStringLiteral("0");
  const double largest = std::max(std::abs(last), std::abs(ns));
  // One unit along the axis, with as many digits as tell neighbours apart.
  const auto [factor, unit] = largest < 1e3   ? std::pair(1.0, "ns")
                              : largest < 1e6 ? std::pair(1e3, "µs")
                              : largest < 1e9 ? std::pair(1e6, "ms")
                                              : std::pair(1e9, "s");
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(std::abs(apart) / factor) - 1e-9)), 0, 9);
  return (ns < 0 ? QStringLiteral("−") : QString()) + QString::number(std::abs(ns) / factor, 'f', digits) + ' ' +
         QString::fromUtf8(unit);
}

std::vector<TimelineCanvas::CutMark> TimelineCanvas::cutMarks() const {
  std::vector<CutMark> marks;
  if (!model_) return marks;
  for (const TimelineCut& cut : axis().cuts()) {
    const double x = xOf(cut.begin);
    if (x < area().left() || x > area().right()) continue;
    if (marks.empty() || x - marks.back().last >= kMarkApart) marks.push_back({x, x, {}, {}});
    marks.back().last = x;
    marks.back().cuts.push_back(&cut);
  }
  const QFontMetricsF metrics(text_.font());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    CutMark& mark = marks[i];
    std::int64_t ns = 0;
    for (const TimelineCut* cut : mark.cuts) ns += cut->end - cut->begin;
    const bool inSteps = std::ranges::all_of(mark.cuts, [](const TimelineCut* cut) { return cut->step >= 0; });
    const QString time = format::time(ns);
    const double end = (i + 1 < marks.size() ? marks[i + 1].first : width()) - 8;
    for (const QString& words :
         {mark.cuts.size() > 1 ? QStringLiteral("%1 %2, %3").arg(mark.cuts.size()).arg(inSteps ? "stops" : "gaps").arg(time)
          : inSteps            ? QStringLiteral("paused %1").arg(time)
                               : QStringLiteral("%1 between").arg(time),
          time}) {
      mark.label =
          QRectF(mark.last + 6, area().top() - 4 - metrics.ascent(), metrics.horizontalAdvance(words), metrics.height());
      if (mark.label.right() > end) continue;
      mark.words = words;
      break;
    }
  }
  return marks;
}

std::vector<const TimelineCut*> TimelineCanvas::cutsAt(QPointF pixel) const {
  for (const CutMark& mark : cutMarks()) {
    const bool onLabel = !mark.words.isEmpty() && mark.label.contains(pixel);
    if (onLabel || (pixel.x() >= mark.first - 3 && pixel.x() <= mark.last + 3)) return mark.cuts;
  }
  return {};
}

QString TimelineCanvas::cutTip(const std::vector<const TimelineCut*>& cuts) const {
  QStringList lines;
  std::int64_t ns = 0;
  for (const TimelineCut* cut : cuts) {
    const std::int64_t length = cut->end - cut->begin;
    ns += length;
    if (lines.size() >= static_cast<int>(kMostInTip)) continue;
    lines << QStringLiteral("%1 %2 %3 (%4)")
                 .arg(cut->stopped ? QStringLiteral("paused") : QStringLiteral("nothing ran for"), format::time(length),
                      stepsWord(*model_, *cut), format::timeExact(length));
  }
  if (cuts.size() > kMostInTip) lines << QStringLiteral("and %1 more").arg(cuts.size() - kMostInTip);
  if (cuts.size() > 1) lines << QStringLiteral("%1 in all").arg(format::time(ns));
  lines << QStringLiteral("Cut out of the axis: what stands left and right of it is as far apart as what ran took.");
  return lines.join('\n');
}

void TimelineCanvas::paintRuler(QPainter& p, const Tokens& t) {
  const QRectF area = this->area();
  p.fillRect(QRectF(0, 0, width(), area.top()), t.raised);
  paintTicks(p, t);
  for (std::size_t i = 0; i < model_->steps().size(); ++i)
    paintStep(p, t, model_->steps()[i], i % 2 == 0 ? t.hover : t.select);
  p.setPen(t.border);
  p.drawLine(QPointF(0, area.top() - 0.5), QPointF(width(), area.top() - 0.5));
  p.drawLine(QPointF(area.left() - 0.5, area.top()), QPointF(area.left() - 0.5, height()));
}

void TimelineCanvas::paintTicks(QPainter& p, const Tokens& t) {
  const QRectF area = this->area();
  const QFontMetricsF metrics(text_.font());
  // Times count from the begin of the step under the left edge, which is what people compare.
  double zero = viewBegin();
  for (std::size_t i = 0; i < model_->steps().size(); ++i) {
    const double begin = axis().toPlace(static_cast<double>(model_->steps()[i].begin));
    if (i == 0 || begin <= viewBegin() + (viewEnd() - viewBegin()) * 0.02) zero = begin;
  }
  const std::vector<CutMark> marks = cutMarks();
  const std::vector<double> ticks =
      decimalTicks(viewBegin() - zero, viewEnd() - zero, std::max(2, static_cast<int>(area.width() / 95)));
  for (const double tick : ticks) {
    const double x = toX(zero + tick);
    p.setPen(t.border);
    p.drawLine(QPointF(x, area.top() - 5), QPointF(x, area.top()));
    p.setPen(t.faint);
    const QString words = tickText(tick, ticks.size() > 1 ? ticks[1] - ticks[0] : tick, ticks.empty() ? 0 : ticks.back());
    const double end = x + 3 + metrics.horizontalAdvance(words);
    const bool covered = std::ranges::any_of(marks, [&](const CutMark& mark) {
      const double right = mark.words.isEmpty() ? mark.last + 4 : mark.label.right() + 4;
      return x < right && end > mark.first - 6;
    });
    if (end + 1 < width() && !covered) p.drawText(QPointF(x + 3, area.top() - 4), words);
  }
}

void TimelineCanvas::paintStep(QPainter& p, const Tokens& t, const TimelineStep& step, const QColor& fill) {
  const QRectF area = this->area();
  const QFontMetricsF metrics(text_.font());
  const double x0 = std::max(area.left(), xOf(step.begin)), x1 = std::min(area.right(), xOf(step.end));
  if (x1 <= x0) return;
  const QRectF r(x0, 3, std::max(2.0, x1 - x0 - 1), 1.35 * Metrics::current().unit);
  p.fillRect(r, fill);
  if (step.warmUp) p.fillRect(r, QBrush(t.edge, Qt::BDiagPattern));
  QString words = QStringLiteral("step %1").arg(step.step);
  if (step.warmUp) words += QStringLiteral(", warm-up");
  if (step.other) words += QStringLiteral(", another plan");
  const QString time = format::time(step.end - step.begin - step.waiting) +
                       (step.waiting > 0 ? QStringLiteral(" + %1 paused").arg(format::time(step.waiting)) : QString());
  const double wordsWidth = metrics.horizontalAdvance(words), timeWidth = metrics.horizontalAdvance(time);
  const bool both = r.width() > wordsWidth + timeWidth + 22;
  // Hatching would run through the words.
  if (step.warmUp)
    p.fillRect(QRectF(r.x(), r.y(), std::min(r.width(), wordsWidth + (both ? timeWidth + 22 : 10)), r.height()), fill);
  if (r.width() <= wordsWidth + 10) return;
  const double baseline = r.center().y() + metrics.ascent() / 2 - 1.5;
  p.setPen(t.muted);
  p.drawText(QPointF(r.x() + 5, baseline), words);
  p.setPen(t.faint);
  if (both) p.drawText(QPointF(r.x() + wordsWidth + 14, baseline), time);
}

// A break of the axis: a gap in its line with two strokes, as that of the memory map, and a dashed line through the rows.
void TimelineCanvas::paintCuts(QPainter& p, const Tokens& t) {
  const QRectF area = this->area();
  const double bottom = std::min<double>(height(), rowTop(static_cast<int>(model_->rows().size())));
  for (const CutMark& mark : cutMarks()) {
    const double x = std::round((mark.first + mark.last) / 2) + 0.5;
    p.fillRect(QRectF(x - 1.5, area.top(), 3, bottom - area.top()), t.panel);
    p.setPen(QPen(t.muted, 1, Qt::DashLine));
    p.drawLine(QPointF(x, area.top() + kSignHeight), QPointF(x, bottom));
    p.fillRect(QRectF(x - 1.5, area.top() - 1, 4, 2), t.raised);
    p.setPen(QPen(t.muted, 1.2));
    for (const double dx : {-2.5, 1.5})
      p.drawLine(QPointF(x + dx - 1, area.top() + kSignHeight), QPointF(x + dx + 2, area.top() - kSignHeight));
    if (mark.words.isEmpty()) continue;
    p.setPen(t.muted);
    p.drawText(QPointF(mark.label.x(), area.top() - 4), mark.words);
  }
}

}  // namespace stepscope
