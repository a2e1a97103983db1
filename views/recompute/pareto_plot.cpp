// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/recompute/pareto_plot.h"

#include <QDateTime>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/drawing/plot_style.h"

namespace stepscope {
namespace {

constexpr double kNear = 14;  // pixels
constexpr double kMost = 1e15;

struct Unit {
  double size;
  const char* name;
};

// The largest unit of which the value holds at least one.
template <std::size_t N>
const Unit& unitOf(double value, const Unit (&units)[N]) {
  std::size_t i = 0;
  while (i + 1 < N && value >= units[i + 1].size) ++i;
  return units[i];
}

const Unit kBytes[] = {{1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824, "GiB"}};
const Unit kTimes[] = {{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}};

bool sound(double x) { return std::isfinite(x) && std::abs(x) < kMost; }

std::int64_t whole(double x) { return sound(x) ? static_cast<std::int64_t>(x) : 0; }

QString timeOfDay(std::int64_t unixNs) {
  return QDateTime::fromMSecsSinceEpoch(unixNs / 1'000'000).toString(QStringLiteral("HH:mm:ss"));
}

// A plan that ran before the present one, by the same measure as the line.
bool isComparable(const snapshot::RecomputeReport& report, const snapshot::RecomputeRun& run) {
  return run.present() ? report.measured() : report.measured() && !run.cold();
}

QString describe(const snapshot::RecomputePoint& p) {
  QString text = QStringLiteral("%1 at the peak of values, an arena of %2, step %3")
                     .arg(format::bytes(p.peak_bytes()), format::bytes(p.arena_bytes()), format::time(whole(p.step_ns())));
  text += p.nodes() == 0
              ? QStringLiteral("\nnothing runs again")
              : QStringLiteral("\n%1 nodes run again, %2").arg(format::count(p.nodes()), format::time(whole(p.extra_ns())));
  return p.plan().empty() ? text : text + '\n' + format::visible(p.plan());
}

}  // namespace

QString costBasis(const snapshot::RecomputeReport& report) {
  if (!report.measured()) return QStringLiteral("costs estimated");
  if (report.cold()) return QStringLiteral("costs of 1 step, cold");
  return QStringLiteral("costs of %1 step%2")
      .arg(format::count(report.timed_steps()), report.timed_steps() == 1 ? QString() : QStringLiteral("s"));
}

ParetoPlot::ParetoPlot(QWidget* parent) : QCustomPlot(parent) {
  setAccessibleName(QStringLiteral("Time of a step over the peak of live activations"));
  setMinimumSize(90, 70);
  setMouseTracking(true);
  predicted_ = addGraph();
  predicted_->setName(QStringLiteral("predicted"));
  measured_ = addGraph();
  measured_->setName(QStringLiteral("ran before"));
  present_ = addGraph();
  present_->setName(QStringLiteral("runs now"));
  chosen_ = addGraph();
  chosen_->setName(QStringLiteral("the choice below"));
  spread_ = new QCPErrorBars(xAxis, yAxis);
  spread_->setDataPlottable(measured_);
  spread_->removeFromLegend();
  predicted_->setLineStyle(QCPGraph::lsLine);
  for (QCPGraph* g : {measured_, present_, chosen_}) g->setLineStyle(QCPGraph::lsNone);
  legend->setVisible(true);
  keepLegendClear(*axisRect(), *legend);
  axisRect()->setupFullAxesBox();
  xAxis2->setVisible(false);
  yAxis2->setVisible(false);
  for (QCPAxis* axis : {xAxis, yAxis}) axis->ticker()->setTickCount(4);
  colour();
}

void ParetoPlot::colour() {
  const Tokens& t = Tokens::current();
  dressAxes(*this);
  const double unit = Metrics::current().unit;
  predicted_->setPen(
      QPen(t.series(0), 1.6, report_ && report_->measured() && !report_->cold() ? Qt::SolidLine : Qt::DashLine));
  predicted_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, unit * 0.4));
  measured_->setPen(QPen(t.series(3), 1.6));
  measured_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDiamond, t.series(3), t.panel, unit * 0.75));
  present_->setPen(QPen(t.series(3), 1.6));
  present_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDiamond, t.series(3), t.series(3), unit * 0.75));
  chosen_->setPen(QPen(t.text, 1.6));
  chosen_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, t.text, Qt::transparent, unit * 0.95));
  spread_->setPen(QPen(t.series(3), 1));
  dressLegend(*legend);
}

void ParetoPlot::resizeEvent(QResizeEvent* event) {
  legend->setVisible(event->size().width() > 26 * Metrics::current().unit &&
                     event->size().height() > 9 * Metrics::current().unit);
  QCustomPlot::resizeEvent(event);
}

void ParetoPlot::setReport(const std::shared_ptr<const snapshot::RecomputeReport>& report) {
  report_ = report;
  double mostBytes = 1, mostTime = 1;
  const auto see = [&](std::int64_t bytes, double ns) {
    mostBytes = std::max(mostBytes, static_cast<double>(bytes));
    if (sound(ns)) mostTime = std::max(mostTime, ns);
  };
  if (report_) {
    for (const auto& p : report_->curve()) see(p.peak_bytes(), p.step_ns());
    for (const auto& r : report_->runs())
      if (isComparable(*report_, r)) see(r.peak_bytes(), r.median_ns());
  }
  const Unit &bytes = unitOf(mostBytes, kBytes), &times = unitOf(mostTime, kTimes);
  byteUnit_ = bytes.size;
  timeUnit_ = times.size;
  xAxis->setLabel(QStringLiteral("peak of values, %1").arg(QString::fromUtf8(bytes.name)));
  yAxis->setLabel(QStringLiteral("step, %1").arg(QString::fromUtf8(times.name)));
  QVector<double> x, y, xm, ym, below, above, xp, yp;
  if (report_) {
    for (const auto& p : report_->curve()) {
      if (!sound(p.step_ns())) continue;
      x << bytesOf(p.peak_bytes());
      y << p.step_ns() / timeUnit_;
    }
    for (const auto& r : report_->runs()) {
      if (!isComparable(*report_, r) || !sound(r.median_ns()) || !sound(r.min_ns()) || !sound(r.max_ns())) continue;
      if (r.present()) present_->setName(r.cold() ? QStringLiteral("runs now: 1 step, cold") : QStringLiteral("runs now"));
      (r.present() ? xp : xm) << bytesOf(r.peak_bytes());
      (r.present() ? yp : ym) << r.median_ns() / timeUnit_;
      if (r.present()) continue;
      below << std::max(0.0, r.median_ns() - r.min_ns()) / timeUnit_;
      above << std::max(0.0, r.max_ns() - r.median_ns()) / timeUnit_;
    }
  }
  if (report_)
    predicted_->setName(!report_->measured() ? QStringLiteral("estimate: the least time")
                        : report_->cold()    ? QStringLiteral("predicted from 1 step, cold")
                                             : QStringLiteral("predicted"));
  colour();
  predicted_->setData(x, y);
  measured_->setData(xm, ym);
  present_->setData(xp, yp);
  spread_->setData(below, above);
  for (const auto& [graph, shown] : {std::pair(measured_, !xm.isEmpty()), std::pair(present_, !xp.isEmpty())}) {
    graph->removeFromLegend();
    if (shown) graph->addToLegend();
  }
  setChoice(choice_);
}

void ParetoPlot::setChoice(const std::optional<snapshot::RecomputePoint>& point) {
  choice_ = point;
  QVector<double> x, y;
  if (point && sound(point->step_ns())) {
    x << bytesOf(point->peak_bytes());
    y << point->step_ns() / timeUnit_;
  }
  chosen_->setData(x, y);
  chosen_->removeFromLegend();
  if (!x.isEmpty()) chosen_->addToLegend();
  fit();
}

void ParetoPlot::fit() {
  bool any = false;
  for (const QCPGraph* g : {predicted_, measured_, present_, chosen_}) any = any || g->dataCount() > 0;
  for (QCPAxis* axis : {xAxis, yAxis}) {
    axis->setTickLabels(any);  // an empty plot has no numbers
    if (!any) {
      axis->setRange(0, 1);
      continue;
    }
    axis->rescale();
    QCPRange range = axis->range();
    const double around = std::max(range.size() * 0.12, std::abs(range.center()) * 0.02);
    axis->setRange(std::max(0.0, range.lower - around), range.upper + around);  // neither bytes nor times are below zero
  }
  replot(QCustomPlot::rpQueuedReplot);
}

QString ParetoPlot::textAt(QPointF pixel, int* point) const {
  if (point) *point = -1;
  if (!report_) return {};
  double best = kNear;
  QString text;
  const auto offer = [&](std::int64_t bytes, double ns, const auto& describeIt, int place) {
    if (!sound(ns)) return;
    const QPointF at(xAxis->coordToPixel(bytesOf(bytes)), yAxis->coordToPixel(ns / timeUnit_));
    const double distance = std::hypot(at.x() - pixel.x(), at.y() - pixel.y());
    if (distance >= best) return;
    best = distance;
    text = describeIt();
    if (point) *point = place;
  };
  for (int i = 0; i < report_->curve_size(); ++i) {
    const auto& p = report_->curve(i);
    offer(
        p.peak_bytes(), p.step_ns(),
        [&] {
          return report_->measured() ? QStringLiteral("Predicted (%1): %2").arg(costBasis(*report_), describe(p))
                                     : QStringLiteral("Estimate, the least time: %1").arg(describe(p));
        },
        i);
  }
  for (const auto& r : report_->runs()) {
    if (!isComparable(*report_, r)) continue;
    offer(
        r.peak_bytes(), r.median_ns(),
        [&r] {
          QString what =
              r.present()
                  ? QStringLiteral("Measured, the plan that runs: ")
                  : QStringLiteral("Measured at %1, under a plan before the present one: ").arg(timeOfDay(r.newest()));
          what += r.cold()
                      ? QStringLiteral("%1 at the peak of values, 1 step of %2, cold")
                            .arg(format::bytes(r.peak_bytes()), format::time(whole(r.median_ns())))
                      : QStringLiteral("%1 at the peak of values, steps of %2 (median of the newest of %3; %4 to %5)")
                            .arg(format::bytes(r.peak_bytes()), format::time(whole(r.median_ns())), format::count(r.steps()),
                                 format::time(whole(r.min_ns())), format::time(whole(r.max_ns())));
          if (!r.plan().empty()) what += '\n' + format::visible(r.plan());
          if (r.budget() > 0) what += QStringLiteral("\nbudget %1").arg(format::bytes(r.budget()));
          return r.plan().empty() && r.budget() == 0 ? what + QStringLiteral("\nnothing runs again") : what;
        },
        -1);
  }
  return text;
}

void ParetoPlot::mouseMoveEvent(QMouseEvent* event) {
  QCustomPlot::mouseMoveEvent(event);
  int point = -1;
  const QString text = textAt(event->position(), &point);
  setCursor(point >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  if (text.isEmpty())
    QToolTip::hideText();
  else
    QToolTip::showText(event->globalPosition().toPoint(),
                       text.toHtmlEscaped().prepend(QStringLiteral("<p style='white-space:pre-wrap'>")), this);
}

void ParetoPlot::mouseReleaseEvent(QMouseEvent* event) {
  QCustomPlot::mouseReleaseEvent(event);
  int point = -1;
  textAt(event->position(), &point);
  if (event->button() == Qt::LeftButton && point >= 0) emit pointPicked(point);
}

}  // namespace stepscope
