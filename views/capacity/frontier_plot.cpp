// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/capacity/frontier_plot.h"

#include <algorithm>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/drawing/plot_style.h"

namespace stepscope {
namespace {

struct Unit {
  double size;
  const char* name;
};
constexpr Unit kBytes[] = {{1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824, "GiB"}};

}  // namespace

FrontierPlot::FrontierPlot(QWidget* parent) : QCustomPlot(parent) {
  setObjectName(QStringLiteral("capacity_plot"));
  setAccessibleName(QStringLiteral("Memory of the step over the extent"));
  setMinimumSize(90, 70);
  plain_ = addGraph();
  plain_->setName(QStringLiteral("all is kept"));
  recompute_ = addGraph();
  recompute_->setName(QStringLiteral("with recompute"));
  memory_ = addGraph();
  memory_->setName(QStringLiteral("memory"));
  legend->setVisible(true);
  keepLegendClear(*axisRect(), *legend);
  axisRect()->setupFullAxesBox();
  xAxis2->setVisible(false);
  yAxis2->setVisible(false);
  fitTicks(*this);
  colour();
}

void FrontierPlot::colour() {
  const Tokens& t = Tokens::current();
  countWhole(*xAxis);
  dressAxes(*this);
  const double unit = Metrics::current().unit;
  plain_->setPen(QPen(t.series(0), 1.6));
  plain_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, unit * 0.45));
  recompute_->setPen(QPen(t.series(3), 1.6));
  recompute_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDiamond, t.series(3), t.panel, unit * 0.7));
  memory_->setPen(QPen(t.muted, 1.2, Qt::DashLine));
  dressLegend(*legend);
  replot(rpQueuedReplot);
}

void FrontierPlot::resizeEvent(QResizeEvent* event) {
  legend->setVisible(event->size().width() > 26 * Metrics::current().unit &&
                     event->size().height() > 9 * Metrics::current().unit);
  QCustomPlot::resizeEvent(event);
}

void FrontierPlot::show(const snapshot::CapacityReport& report) {
  double most = static_cast<double>(report.memory_bytes()), last = 1;
  // The curves end soon above the memory: what is far beyond it would press them flat.
  const double top = 1.6 * static_cast<double>(report.memory_bytes());
  for (const auto& p : report.points()) {
    if (static_cast<double>(p.peak_bytes()) > top) continue;
    most = std::max(most, static_cast<double>(p.peak_bytes()));
    last = std::max(last, static_cast<double>(p.extent()));
  }
  std::size_t at = 0;
  while (at + 1 < std::size(kBytes) && most >= kBytes[at + 1].size) ++at;
  const double unit = kBytes[at].size;
  QVector<double> x, y, xr, yr;
  for (const auto& p : report.points()) {
    const bool kept = p.recompute() == "none";
    (kept ? x : xr) << static_cast<double>(p.extent());
    (kept ? y : yr) << static_cast<double>(p.peak_bytes()) / unit;
  }
  plain_->setData(x, y);
  recompute_->setData(xr, yr);
  const double right = last * 1.05 + 0.5, memory = static_cast<double>(report.memory_bytes()) / unit;
  memory_->setData({0, right}, {memory, memory});
  recompute_->setVisible(!xr.isEmpty());
  if (xr.isEmpty())
    recompute_->removeFromLegend();
  else
    recompute_->addToLegend();
  xAxis->setLabel(format::visible(report.dimension()));
  yAxis->setLabel(QStringLiteral("peak, %1").arg(QString::fromLatin1(kBytes[at].name)));
  xAxis->setRange(0, right);
  yAxis->setRange(0, most / unit * 1.1);
  replot(rpQueuedReplot);
}

}  // namespace stepscope
