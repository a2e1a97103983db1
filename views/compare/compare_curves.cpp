// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/compare_curves.h"

#include <QEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/drawing/plot_style.h"

namespace stepscope {
namespace {
constexpr double kRounding = 1e-12;  // of a sum in f64, relative: what its order changes is no difference
constexpr int kSeriesA = 0, kSeriesB = 1, kSeriesLoss = 5, kSeriesNorm = 3;

// Broken between words into lines of at most `width` pixels, as far as words allow it.
QString inLines(const QString& text, const QFontMetrics& font, int width) {
  QStringList lines;
  for (const QString& word : text.split(' ', Qt::SkipEmptyParts)) {
    const QString longer = lines.isEmpty() ? word : lines.back() + ' ' + word;
    if (lines.isEmpty() || font.horizontalAdvance(longer) > width)
      lines << word;
    else
      lines.back() = longer;
  }
  return lines.join('\n');
}

}  // namespace

CompareCurves::CompareCurves(QWidget* parent) : QCustomPlot(parent) {
  setAccessibleName(QStringLiteral("Losses of both runs over steps, and their differences"));
  setMinimumHeight(80);
  plotLayout()->clear();
  upper_ = new QCPAxisRect(this);
  lower_ = new QCPAxisRect(this);
  plotLayout()->addElement(0, 0, upper_);
  plotLayout()->addElement(1, 0, lower_);
  plotLayout()->setRowStretchFactor(0, 1.6);
  auto* group = new QCPMarginGroup(this);
  const auto axis = [](QCPAxisRect* rect, QCPAxis::AxisType type) { return rect->axis(type); };
  for (auto* rect : {upper_, lower_}) {
    rect->setMarginGroup(QCP::msLeft | QCP::msRight, group);
    rect->setRangeDrag(Qt::Horizontal);
    rect->setRangeZoom(Qt::Horizontal);
    rect->setupFullAxesBox();
    axis(rect, QCPAxis::atTop)->setVisible(false);
    axis(rect, QCPAxis::atRight)->setVisible(rect == lower_);
    countWhole(*axis(rect, QCPAxis::atBottom));
  }
  axis(upper_, QCPAxis::atLeft)->setLabel(QStringLiteral("loss"));
  axis(upper_, QCPAxis::atBottom)->setTickLabels(false);
  axis(lower_, QCPAxis::atLeft)->setLabel(QStringLiteral("loss, B − A"));
  axis(lower_, QCPAxis::atRight)->setLabel(QStringLiteral("norm, B − A"));
  axis(lower_, QCPAxis::atRight)->setTickLabels(true);
  axis(lower_, QCPAxis::atBottom)->setLabel(QStringLiteral("step"));
  lossA_ = addGraph(axis(upper_, QCPAxis::atBottom), axis(upper_, QCPAxis::atLeft));
  lossB_ = addGraph(axis(upper_, QCPAxis::atBottom), axis(upper_, QCPAxis::atLeft));
  lossBy_ = addGraph(axis(lower_, QCPAxis::atBottom), axis(lower_, QCPAxis::atLeft));
  normBy_ = addGraph(axis(lower_, QCPAxis::atBottom), axis(lower_, QCPAxis::atRight));
  auto* legend = new QCPLegend;
  upper_->insetLayout()->addElement(legend, Qt::AlignTop | Qt::AlignRight);
  upper_->insetLayout()->setMargins(QMargins(8, 6, 8, 6));
  legend->setLayer(QStringLiteral("legend"));
  for (auto* g : {lossA_, lossB_}) g->addToLegend(legend);
  keepLegendClear(*upper_, *legend);
  fitTicks(*this);
  for (auto** line : {&cursor_, &first_}) {
    *line = new QCPItemStraightLine(this);
    (*line)->setVisible(false);
    (*line)->point1->setAxes(axis(upper_, QCPAxis::atBottom), axis(upper_, QCPAxis::atLeft));
    (*line)->point2->setAxes(axis(upper_, QCPAxis::atBottom), axis(upper_, QCPAxis::atLeft));
    (*line)->setClipAxisRect(upper_);
  }
  note_ = new QCPItemText(this);
  note_->setClipAxisRect(lower_);
  note_->position->setAxisRect(lower_);
  note_->position->setType(QCPItemPosition::ptAxisRectRatio);
  note_->position->setCoords(0.5, 0.1);
  note_->setPositionAlignment(Qt::AlignHCenter | Qt::AlignTop);
  const auto follow = [](QCPAxis* from, QCPAxis* to) {
    connect(from, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), to,
            [to](const QCPRange& range) { to->setRange(range); });
  };
  follow(lossA_->keyAxis(), lossBy_->keyAxis());
  follow(lossBy_->keyAxis(), lossA_->keyAxis());
  setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  connect(this, &QCustomPlot::mouseMove, this, [this](QMouseEvent* event) {
    const QString text = tip(lossA_->keyAxis()->pixelToCoord(event->position().x()));
    if (text.isEmpty()) return;
    QToolTip::showText(event->globalPosition().toPoint(), text, this);
    replot(rpQueuedReplot);
  });
  colour();
}

QString CompareCurves::tip(double at) {
  if (!comparison_ || comparison_->steps.empty()) return {};
  const auto& steps = comparison_->steps;
  const ComparedStep& s = *std::min_element(steps.begin(), steps.end(), [at](const ComparedStep& x, const ComparedStep& y) {
    return std::abs(static_cast<double>(x.step) - at) < std::abs(static_cast<double>(y.step) - at);
  });
  QString text = QStringLiteral("step %1").arg(format::count(s.step));
  const auto pair = [&text](const QString& what, std::optional<double> a, std::optional<double> b) {
    if (!a && !b) return;
    const auto number = [](std::optional<double> x) { return x ? format::numberExact(*x) : QStringLiteral("none"); };
    text += QStringLiteral("\n%1 A %2\n%1 B %3").arg(what, number(a), number(b));
    if (a && b) text += QStringLiteral("\n%1 B − A %2").arg(what, format::number(*b - *a));
  };
  pair(QStringLiteral("loss"), s.lossA, s.lossB);
  pair(QStringLiteral("gradient norm"), s.normA, s.normB);
  cursor_->point1->setCoords(static_cast<double>(s.step), 0);
  cursor_->point2->setCoords(static_cast<double>(s.step), 1);
  cursor_->setVisible(true);
  return text;
}

void CompareCurves::setComparison(RunComparisonPtr comparison) {
  comparison_ = std::move(comparison);
  QVector<double> x, a, b, loss, xNorm, norm;
  bool norms = false, differ = false;
  largestNorm_ = largestLoss_ = 0;
  if (comparison_) {
    std::int64_t last = -1;
    for (const ComparedStep& s : comparison_->steps) {
      // A hole in the record is a hole in the curve.
      if (last >= 0 && s.step > last + 1) {
        x << static_cast<double>(last) + 0.5;
        for (auto* v : {&a, &b, &loss}) *v << qQNaN();
        if (!norm.isEmpty()) xNorm << x.back(), norm << qQNaN();
      }
      last = s.step;
      x << static_cast<double>(s.step);
      a << s.lossA.value_or(qQNaN());
      b << s.lossB.value_or(qQNaN());
      loss << (s.lossA && s.lossB ? *s.lossB - *s.lossA : qQNaN());
      differ = differ || loss.back() != 0;
      if (s.lossA && s.lossB && std::isfinite(*s.lossA)) largestLoss_ = std::max(largestLoss_, std::abs(*s.lossA));
      // Without clipping only some steps recorded their gradients: a line leads from one to the next.
      if (!s.normA || !s.normB) continue;
      xNorm << static_cast<double>(s.step);
      norm << *s.normB - *s.normA;
      norms = true;
      largestNorm_ = std::max(largestNorm_, std::abs(*s.normA));
      differ = differ || norm.back() != 0;
    }
    lossA_->setName(QStringLiteral("A · run %1").arg(comparison_->a.run.id));
    lossB_->setName(QStringLiteral("B · run %1").arg(comparison_->b.run.id));
  }
  lossA_->setData(x, a, true);
  lossB_->setData(x, b, true);
  lossBy_->setData(x, loss, true);
  normBy_->setData(xNorm, norm, true);
  normBy_->valueAxis()->setVisible(norms);
  QStringList notes;
  if (comparison_ && comparison_->both == 0) {
    notes << QStringLiteral("the runs share no step number");
  } else if (comparison_ && !differ) {
    notes << QStringLiteral("equal in every bit");
  }
  // Below the plot: a note across the lines would hide them.
  below_ = comparison_ && !norms ? QStringLiteral("step  ·  no step in which both runs recorded their gradients")
                                 : QStringLiteral("step");
  over_ = notes.join('\n');
  placeTexts();
  first_->setVisible(comparison_ && comparison_->first);
  if (comparison_ && comparison_->first) {
    first_->point1->setCoords(static_cast<double>(comparison_->first->step), 0);
    first_->point2->setCoords(static_cast<double>(comparison_->first->step), 1);
  }
  cursor_->setVisible(false);
  const bool few = x.size() < 60;
  for (auto* g : {lossA_, lossB_, lossBy_, normBy_})
    g->setScatterStyle(few ? QCPScatterStyle(QCPScatterStyle::ssDisc, 4) : QCPScatterStyle(QCPScatterStyle::ssNone));
  lossB_->setScatterStyle(few ? QCPScatterStyle(QCPScatterStyle::ssCircle, 6) : QCPScatterStyle(QCPScatterStyle::ssNone));
  fit();
}

void CompareCurves::placeTexts() {
  constexpr int kAxes = 110;  // left and right of the plots
  const int room = std::max(40, width() - kAxes);
  lossBy_->keyAxis()->setLabel(inLines(below_, QFontMetrics(lossBy_->keyAxis()->labelFont()), room));
  note_->setText(inLines(over_, QFontMetrics(note_->font()), room));
}

void CompareCurves::resizeEvent(QResizeEvent* event) {
  placeTexts();
  QCustomPlot::resizeEvent(event);
}

void CompareCurves::setLogarithmic(bool on) {
  QCPAxis* axis = lossA_->valueAxis();
  axis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  if (on)
    countLogarithmic(*axis);
  else
    countNumbers(*axis);
  fit();
}

// No numbers where nothing was measured.
void CompareCurves::scale(QCPAxis& axis, bool any) {
  axis.setTickLabels(any);
  axis.grid()->setVisible(any);
}

void CompareCurves::fit() {
  for (auto* axis : {lossA_->valueAxis(), lossBy_->valueAxis(), normBy_->valueAxis()}) {
    QCPRange range;
    bool any = false;
    for (auto* g : axis->graphs()) {
      bool found = false;
      const QCPRange r =
          g->getValueRange(found, axis->scaleType() == QCPAxis::stLogarithmic ? QCP::sdPositive : QCP::sdBoth);
      if (!found) continue;
      any ? range.expand(r) : void(range = r);
      any = true;
    }
    // Both differences have their zero at one height.
    if (axis->axisRect() == lower_) {
      // No difference, or none but of rounding, is shown on the scale of what was compared.
      const bool norm = axis == normBy_->valueAxis();
      const double whole = norm ? largestNorm_ : largestLoss_;
      double most = std::max(std::abs(range.lower), std::abs(range.upper));
      if (most == 0 || (norm && most < kRounding * whole)) most = whole > 0 ? whole : 1;
      range = QCPRange(-most, most);
      scale(*axis, any);
    }
    if (!any) range = QCPRange(axis->scaleType() == QCPAxis::stLogarithmic ? 0.1 : -1, 1);
    // A constant has no range of its own: its axis shows a tenth around it.
    if (range.size() <= 0) {
      const double around = range.lower == 0 ? 1 : std::abs(range.lower) * 0.1;
      range = QCPRange(range.lower - around, range.lower + around);
    }
    axis->setRange(range);
    axis->scaleRange(1.12, axis->range().center());
  }
  lossA_->keyAxis()->rescale(false);
  if (comparison_ && comparison_->steps.size() == 1) {
    const double at = static_cast<double>(comparison_->steps.front().step);
    lossA_->keyAxis()->setRange(at - 0.5, at + 0.5);
  } else {
    // Whole dots at both ends, in a narrow panel too.
    const double room = comparison_ && comparison_->steps.size() < 60 ? 1.12 : 1.04;
    lossA_->keyAxis()->scaleRange(room, lossA_->keyAxis()->range().center());
  }
  colour();
  replot(rpQueuedReplot);
}

void CompareCurves::colour() {
  const Tokens& t = Tokens::current();
  dressAxes(*this);
  lower_->axis(QCPAxis::atLeft)->grid()->setZeroLinePen(QPen(t.edge, 1));
  lossA_->setPen(QPen(t.series(kSeriesA), 2.4));
  QPen dashed(t.series(kSeriesB), 1.6);
  dashed.setDashPattern({5, 3});
  lossB_->setPen(dashed);
  lossBy_->setPen(QPen(t.series(kSeriesLoss), 1.4));
  normBy_->setPen(QPen(t.series(kSeriesNorm), 1.4));
  lossBy_->valueAxis()->setLabelColor(t.series(kSeriesLoss));
  normBy_->valueAxis()->setLabelColor(t.series(kSeriesNorm));
  cursor_->setPen(QPen(t.edge, 1));
  QPen first(t.warn, 1);
  first.setStyle(Qt::DotLine);
  first_->setPen(first);
  note_->setColor(t.muted);
  note_->setFont(smallFont());
  for (auto* legend : findChildren<QCPLegend*>()) dressLegend(*legend);
}

void CompareCurves::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) {
    colour();
    replot(rpQueuedReplot);
  }
}

}  // namespace stepscope
