// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/startup_chart/startup_chart_view.h"

#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "views/common/format.h"
#include "views/common/startup_history.h"

namespace stepscope {
namespace {

// Between reading a model and building it somebody looks at the set-up: that is no time of a phase and would fill the chart.
constexpr std::int64_t kWait = 1'000'000;

// By the begin of a phase: how long nothing ran in all before it, gaps shorter than kWait not counted.
template <typename Phases>
std::map<std::int64_t, std::int64_t> waitsBefore(const Phases& phases) {
  std::map<std::int64_t, std::int64_t> ends, waits;
  for (const auto& span : phases) {
    if (span.depth() != 0) continue;
    auto& end = ends[span.begin_ns()];
    end = std::max(end, span.begin_ns() + std::max<std::int64_t>(0, span.ns()));
  }
  std::int64_t sum = 0, last = ends.empty() ? 0 : ends.begin()->first;
  for (const auto& [begin, end] : ends) {
    if (begin - last >= kWait) waits[begin] = sum += begin - last;
    last = std::max(last, end);
  }
  return waits;
}

}  // namespace

StartupChartView::StartupChartView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("startup_chart"), QStringLiteral("Start-up chart"), parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  canvas_ = new FlameCanvas(this);
  canvas_->setObjectName(QStringLiteral("startup_chart_canvas"));
  canvas_->setAccessibleName(QStringLiteral("Phases of the build over time"));
  column->addWidget(canvas_);
  setFocusProxy(canvas_);
  connect(&store(), &SnapshotStore::phasesChanged, this, &StartupChartView::rebuild);
  connect(&store().project(), &ProjectFacts::startupHistoryChanged, this, &StartupChartView::headerChanged);
  connect(canvas_, &FlameCanvas::chosen, this, [this](int id) {
    // A phase shows the graph that it left, where one is kept.
    const auto& phases = store().phases();
    if (id >= 0 && id < static_cast<int>(phases.size()) &&
        store().stages().contains(QString::fromStdString(phases[static_cast<std::size_t>(id)].name()))) {
      emit wishes().stageGraph(QString::fromStdString(phases[static_cast<std::size_t>(id)].name()));
    }
  });
  rebuild();
}

QString StartupChartView::headerText() const {
  if (store().phases().empty()) return {};
  std::int64_t sum = 0;
  for (const auto& span : store().phases()) sum += span.depth() == 0 ? std::max<std::int64_t>(0, span.ns()) : 0;
  const bool fromFile = store().phases().front().name() == "load";
  const QString now =
      (fromFile ? QStringLiteral("%1 from file to plan") : QStringLiteral("%1 from the read model to a new plan"))
          .arg(format::time(sum));
  const EarlierTimes earlier = EarlierStartups(store().project().startupHistory()).of({});
  if (earlier.n == 0 || earlier.median == 0) return now;
  return QStringLiteral("%1 · phases %2 beside the median of %3 earlier")
      .arg(now, format::change(static_cast<double>(earlier.median), static_cast<double>(sum)), format::count(earlier.n));
}

QString StartupChartView::emptyText() const {
  return store().phases().empty()
             ? QStringLiteral(
                   "No build yet. Open a model and build its training step; every phase appears here with its time.")
             : QString();
}

void StartupChartView::rebuild() {
  const auto& phases = store().phases();
  std::vector<FlameBox> boxes;
  std::vector<double> rowEnd;
  const std::map<std::int64_t, std::int64_t> waits = waitsBefore(phases);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const snapshot::PhaseSpan& span = phases[i];
    FlameBox box;
    box.depth = std::clamp(span.depth(), 0, 40);
    const auto wait = waits.upper_bound(span.begin_ns());
    box.begin = static_cast<double>(span.begin_ns() - (wait == waits.begin() ? 0 : std::prev(wait)->second));
    box.end = box.begin + static_cast<double>(std::max<std::int64_t>(0, span.ns()));
    box.name = format::visible(span.name());
    box.detail = format::time(span.ns());
    if (span.has_pass() && span.pass().matches() > 0)
      box.detail += QStringLiteral(" · %1 matches").arg(format::count(span.pass().matches()));
    box.category = box.depth == 0    ? QStringLiteral("elementwise")
                   : span.has_pass() ? QStringLiteral("reduction")
                                     : QStringLiteral("movement");
    box.failed = !span.error().empty();
    box.id = static_cast<int>(i);
    // Clocks of children may touch: a row never overlaps itself.
    if (rowEnd.size() <= static_cast<std::size_t>(box.depth)) rowEnd.resize(static_cast<std::size_t>(box.depth) + 1, -1e300);
    double& end = rowEnd[static_cast<std::size_t>(box.depth)];
    box.begin = std::max(box.begin, end);
    box.end = std::max(box.begin, box.end);
    end = box.end;
    boxes.push_back(std::move(box));
  }
  canvas_->setBoxes(
      std::move(boxes), [](double ns) { return format::time(static_cast<std::int64_t>(ns)); },
      [this](const FlameBox& box) { return tip(box); });
  emit headerChanged();
  emit emptyChanged();
}

QString StartupChartView::tip(const FlameBox& box) const {
  if (box.id < 0 || box.id >= static_cast<int>(store().phases().size())) return {};
  const snapshot::PhaseSpan& span = store().phases()[static_cast<std::size_t>(box.id)];
  QStringList lines{box.name, QStringLiteral("%1 (%2)").arg(format::time(span.ns()), format::timeExact(span.ns()))};
  const EarlierTimes earlier = EarlierStartups(store().project().startupHistory()).of(phasePaths(store().phases())[box.id]);
  if (earlier.n > 0) {
    lines << QStringLiteral("previous start-up %1").arg(format::time(earlier.previous));
    lines << QStringLiteral("median of %1 earlier %2, min %3, max %4: %5")
                 .arg(format::count(earlier.n), format::time(earlier.median), format::time(earlier.min),
                      format::time(earlier.max),
                      format::change(static_cast<double>(earlier.median), static_cast<double>(span.ns())));
  }
  if (span.count() > 0) lines << QStringLiteral("%1 items").arg(format::count(span.count()));
  if (span.peak_bytes() > 0) lines << QStringLiteral("%1 resident at its end").arg(format::bytes(span.peak_bytes()));
  if (span.has_pass()) {
    const snapshot::PassReport& pass = span.pass();
    lines << QStringLiteral("%1 matches · %2 near misses · %3 → %4 nodes")
                 .arg(format::count(pass.matches()), format::count(pass.near_misses_size()),
                      format::count(pass.nodes_before()), format::count(pass.nodes_after()));
    for (int i = 0; i < std::min(4, pass.near_misses_size()); ++i)
      lines << QStringLiteral("near miss: %1").arg(format::visible(pass.near_misses(i).condition()));
    for (int i = 0; i < std::min(4, pass.notes_size()); ++i) lines << format::visible(pass.notes(i));
  }
  if (!span.error().empty()) lines << QStringLiteral("failed: %1").arg(format::visible(span.error()));
  return lines.join('\n');
}

void StartupChartView::fitAll() { canvas_->fit(); }
void StartupChartView::drawPicture(QPainter& painter) { canvas_->paintOn(painter); }

}  // namespace stepscope
