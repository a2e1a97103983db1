// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/gauge_list.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <optional>

#include "views/batch/worst_row.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

QString averageLength(const snapshot::InputDensity& d) {
  return d.rows() > 0 ? format::number(static_cast<double>(d.valid()) / static_cast<double>(d.rows()), 3) : QString();
}

QString kindText(const snapshot::InputDensity& d) {
  if (d.kind() == "labels") return QStringLiteral("label density");
  return d.kind() == "mask" ? QStringLiteral("mask density") : QStringLiteral("token density");
}

double shareOf(const snapshot::InputDensity& d) {
  return d.total() > 0 ? static_cast<double>(d.valid()) / static_cast<double>(d.total()) : 0;
}

// The largest loss of a row, of the steps that recorded their rows: of `of`, or of the newest of them, which may be older
// than the step that the other gauges show.
std::optional<Gauge> worstRowGauge(const std::vector<StepPtr>& steps, std::size_t first, const snapshot::StepRecord* of) {
  Gauge gauge;
  const std::int64_t shown = of ? of->step() : steps.back()->step();
  const auto read = [&gauge, shown](const snapshot::StepRecord& step, const WorstRow& worst) {
    gauge.text = QStringLiteral("%1, mean %2").arg(format::number(worst.loss, 4), format::number(worst.mean, 4));
    if (step.step() != shown) gauge.text += QStringLiteral(", of step %1").arg(format::count(step.step()));
    gauge.tip =
        QStringLiteral("Largest contribution of a row to the loss, and the mean of all %1 rows that count, at step %2")
            .arg(format::count(worst.counted))
            .arg(step.step());
  };
  for (std::size_t i = first; i < steps.size(); ++i) {
    if (!steps[i]->has_row_losses()) continue;
    const auto worst = worstRow(steps[i]->row_losses(), 0);
    if (!worst) continue;
    gauge.history.push_back(std::isfinite(worst->loss) ? worst->loss : 0);
    if (!of) read(*steps[i], *worst);
  }
  if (of && of->has_row_losses())
    if (const auto worst = worstRow(of->row_losses(), 0)) read(*of, *worst);
  if (gauge.text.isEmpty()) return std::nullopt;
  gauge.title = QStringLiteral("worst row");
  return gauge;
}

}  // namespace

std::vector<Gauge> batchGauges(const SnapshotStore& store, std::size_t most, const snapshot::StepRecord* of) {
  std::vector<Gauge> gauges;
  const auto& steps = store.steps();
  if (steps.empty()) return gauges;
  const std::size_t first = steps.size() > most ? steps.size() - most : 0;
  const snapshot::StepRecord& read = of ? *of : *steps.back();
  const auto idOf = [&store](const std::string& name) {
    if (!store.graph()) return -1;
    for (const int id : store.graph()->graph().inputs()) {
      if (const auto* v = store.graph()->value(id); v && v->name() == name) return id;
    }
    return -1;
  };
  const auto count = [&](const QString& title, auto&& number, const QString& tip) {
    if (number(read) <= 0) return;
    Gauge gauge{title, format::count(number(read)), tip, -1, {}, 0, -1};
    for (std::size_t i = first; i < steps.size(); ++i) gauge.history.push_back(static_cast<double>(number(*steps[i])));
    gauges.push_back(std::move(gauge));
  };
  count(
      QStringLiteral("samples"), [](const snapshot::StepRecord& s) { return s.samples(); },
      QStringLiteral("Extent of the first axis of the first input"));
  count(
      QStringLiteral("tokens"), [](const snapshot::StepRecord& s) { return s.tokens(); },
      QStringLiteral("Samples times their length, padding counted"));
  for (const snapshot::InputDensity& d : read.densities()) {
    const int value = idOf(d.input());
    const QString name = format::visible(d.input());
    Gauge density{
        QStringLiteral("%1 of %2").arg(kindText(d), name),
        QStringLiteral("%1 of %2")
            .arg(format::percent(static_cast<double>(d.valid()), static_cast<double>(d.total())), format::count(d.total())),
        QStringLiteral("%1 of %2 elements are data: %3")
            .arg(format::count(d.valid()), format::count(d.total()), format::visible(d.reason())),
        shareOf(d),
        {},
        1,
        value};
    Gauge computed{QStringLiteral("computed of %1").arg(name),
                   QStringLiteral("%1 of %2")
                       .arg(format::percent(static_cast<double>(d.computed()), static_cast<double>(d.total())),
                            format::count(d.total())),
                   QStringLiteral("%1 of %2 elements are computed, decided for every batch: %3")
                       .arg(format::count(d.computed()), format::count(d.total()), format::visible(d.decision())),
                   d.total() > 0 ? static_cast<double>(d.computed()) / static_cast<double>(d.total()) : -1,
                   {},
                   1,
                   value};
    Gauge length{
        QStringLiteral("lengths of %1").arg(name),
        QStringLiteral("%1 … %2, mean %3").arg(format::count(d.shortest()), format::count(d.longest()), averageLength(d)),
        QStringLiteral("Valid elements per row: shortest, longest and mean of %1 rows; the curve is the longest")
            .arg(format::count(d.rows())),
        d.rows() > 0 && d.total() > 0 ? static_cast<double>(d.longest() * d.rows()) / static_cast<double>(d.total()) : -1,
        {},
        0,
        value};
    for (std::size_t i = first; i < steps.size(); ++i) {
      for (const snapshot::InputDensity& then : steps[i]->densities()) {
        if (then.input() != d.input() || then.kind() != d.kind()) continue;
        density.history.push_back(shareOf(then));
        if (then.total() > 0)
          computed.history.push_back(static_cast<double>(then.computed()) / static_cast<double>(then.total()));
        length.history.push_back(static_cast<double>(then.longest()));
      }
    }
    gauges.push_back(std::move(density));
    if (!d.decision().empty()) gauges.push_back(std::move(computed));
    // A mask and the tokens beside it have the same lengths.
    if (d.kind() != "mask" && d.rows() > 1) gauges.push_back(std::move(length));
  }
  if (auto gauge = worstRowGauge(steps, first, of)) gauges.push_back(std::move(*gauge));
  return gauges;
}

GaugeList::GaugeList(QWidget* parent) : QWidget(parent) {
  setAccessibleName(QStringLiteral("Gauges of the batch"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void GaugeList::set(std::vector<Gauge> gauges) {
  gauges_ = std::move(gauges);
  QStringList lines;
  for (const Gauge& g : gauges_) lines << g.title + QStringLiteral(": ") + g.text;
  setAccessibleDescription(lines.join('\n'));
  updateGeometry();
  update();
}

int GaugeList::rowHeight() const { return qRound(1.9 * Metrics::current().unit); }
QSize GaugeList::sizeHint() const {
  return {30 * Metrics::current().unit, static_cast<int>(gauges_.size()) * rowHeight() + Metrics::current().padding};
}
QSize GaugeList::minimumSizeHint() const { return {10 * Metrics::current().unit, sizeHint().height()}; }

int GaugeList::rowAt(const QPoint& at) const {
  const int row = (at.y() - Metrics::current().padding / 2) / rowHeight();
  return at.y() >= 0 && row >= 0 && row < static_cast<int>(gauges_.size()) ? row : -1;
}

void GaugeList::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  const int room = width() - 2 * m.padding, gap = m.unit / 2;
  // Words take what they need, within what leaves a bar and a curve.
  int longestTitle = 0, longestText = 0, withoutBar = 0;
  for (const Gauge& g : gauges_) {
    longestTitle = std::max(longestTitle, fontMetrics().horizontalAdvance(g.title) + 2);
    int& longest = g.share >= 0 ? longestText : withoutBar;
    longest = std::max(longest, fontMetrics().horizontalAdvance(g.text) + 2);
  }
  const int title = std::min(longestTitle, room * 42 / 100), text = std::min(longestText, room * 34 / 100);
  const int rest = std::max(0, room - title - text - 3 * gap);
  // Where there is no bar its room is that of the words, and a curve is as long as they leave.
  const int bar = std::max(rest * 45 / 100, std::min(withoutBar - text - gap, rest * 70 / 100)), curve = rest - bar;
  for (std::size_t i = 0; i < gauges_.size(); ++i) {
    const Gauge& g = gauges_[i];
    QRect row(m.padding, m.padding / 2 + static_cast<int>(i) * rowHeight(), title, rowHeight());
    painter.setFont(font());
    painter.setPen(t.muted);
    painter.drawText(row, Qt::AlignVCenter, format::elided(g.title, painter.fontMetrics(), title));
    row.translate(title + gap, 0);
    row.setWidth(text);
    painter.setPen(t.text);
    // What has no bar has its room too.
    const QRect words = g.share >= 0 ? row : row.adjusted(0, 0, gap + bar, 0);
    painter.drawText(words, Qt::AlignVCenter, format::elided(g.text, painter.fontMetrics(), words.width()));
    row.translate(text + gap, 0);
    row.setWidth(bar);
    if (g.share >= 0) {
      const QRectF whole = QRectF(row).adjusted(0, rowHeight() * 0.32, 0, -rowHeight() * 0.32);
      painter.fillRect(whole, t.grid);
      painter.fillRect(QRectF(whole.topLeft(), QSizeF(whole.width() * std::clamp(g.share, 0.0, 1.0), whole.height())),
                       t.accent);
      painter.setPen(t.border);
      painter.drawRect(whole);
    }
    row.translate(bar + gap, 0);
    row.setWidth(curve);
    if (g.history.size() < 2 || curve < 4) continue;
    const double top = g.top > 0 ? g.top : std::max(1e-300, *std::max_element(g.history.begin(), g.history.end()));
    const QRectF plot = QRectF(row).adjusted(0, rowHeight() * 0.18, 0, -rowHeight() * 0.18);
    painter.setPen(t.grid);
    painter.drawLine(plot.bottomLeft(), plot.bottomRight());
    QPolygonF line;
    for (std::size_t k = 0; k < g.history.size(); ++k) {
      line << QPointF(plot.left() + plot.width() * static_cast<double>(k) / static_cast<double>(g.history.size() - 1),
                      plot.bottom() - plot.height() * std::clamp(g.history[k] / top, 0.0, 1.0));
    }
    painter.setPen(QPen(t.series(0), 1.2));
    painter.drawPolyline(line);
  }
}

void GaugeList::mousePressEvent(QMouseEvent* event) {
  const int row = rowAt(event->pos());
  if (row >= 0 && gauges_[static_cast<std::size_t>(row)].value >= 0)
    emit clicked(gauges_[static_cast<std::size_t>(row)].value);
}

bool GaugeList::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int row = rowAt(help->pos());
  QString tip;
  if (row >= 0) {
    const Gauge& g = gauges_[static_cast<std::size_t>(row)];
    tip = g.title + '\n' + g.text + '\n' + g.tip;
    if (g.history.size() > 1) tip += '\n' + QStringLiteral("The curve: the last %1 steps, from 0").arg(g.history.size());
  }
  QToolTip::showText(help->globalPos(),
                     tip.isEmpty() ? tip : QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(tip.toHtmlEscaped()),
                     this);
  return true;
}

}  // namespace stepscope
