// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/capacity/capacity_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "views/capacity/capacity_rows.h"
#include "views/capacity/frontier_plot.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kMostExtent = 1 << 30, kExtent = 4096;

}  // namespace

CapacityView::CapacityView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("capacity"), QStringLiteral("Capacity"), capacity::columns({}), parent),
      dimension_(new QComboBox),
      most_(new QSpinBox),
      memory_(new QLineEdit),
      recompute_(new QCheckBox(QStringLiteral("With recompute"))),
      summary_(textLine("", "capacity_summary")),
      bar_(new StudyBar("capacity", store().findings().capacity(), wishes(),
                        {QStringLiteral("Plan"),
                         QStringLiteral("Plans the step for many extents, without running any; Esc cancels"),
                         QStringLiteral("Ends it; the answer before stays (Esc)"),
                         QStringLiteral("Plans are being made"),
                         {}})),
      plot_(new FrontierPlot) {
  setFilterPlaceholder(QStringLiteral("Filter plans"));
  body()->insertWidget(0, makeTop());
  body()->insertWidget(1, plot_, 1);
  connect(&store().findings().capacity(), &Study::changed, this, [this] {
    if (!store().findings().capacity().running()) refillLater();
    follow();
  });
  connect(bar_, &StudyBar::startWanted, this, &CapacityView::plan);
  connect(memory_, &QLineEdit::returnPressed, bar_, &StudyBar::press);
  connect(memory_, &QLineEdit::textChanged, this, &CapacityView::follow);
  connect(&store(), &SnapshotStore::modelChanged, this, &CapacityView::takeModel);
  connect(&store(), &SnapshotStore::planChanged, this, &CapacityView::follow);
  connect(&store(), &SnapshotStore::workerChanged, this, &CapacityView::follow);
  connect(&store(), &SnapshotStore::machineChanged, this, &CapacityView::follow);
  takeModel();
}

QWidget* CapacityView::makeTop() {
  const Metrics m = Metrics::current();
  auto* top = new QWidget;
  auto* rows = new QVBoxLayout(top);
  rows->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  rows->setSpacing(qRound(0.35 * m.unit));
  dimension_->setObjectName(QStringLiteral("capacity_dimension"));
  dimension_->setAccessibleName(QStringLiteral("Dimension that varies"));
  dimension_->setToolTip(QStringLiteral("The dimension of the inputs whose extent varies; others stay as they are"));
  dimension_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  most_->setObjectName(QStringLiteral("capacity_most"));
  most_->setAccessibleName(QStringLiteral("Largest extent"));
  most_->setToolTip(QStringLiteral("The largest extent that is looked at"));
  most_->setRange(1, kMostExtent);
  most_->setValue(kExtent);
  most_->setPrefix(QStringLiteral("up to "));
  memory_->setObjectName(QStringLiteral("capacity_memory"));
  memory_->setAccessibleName(QStringLiteral("Memory"));
  memory_->setToolTip(QStringLiteral("What the step may take, such as 24GiB or 755 MiB; empty: what this machine has"));
  memory_->setClearButtonEnabled(true);
  recompute_->setObjectName(QStringLiteral("capacity_recompute"));
  recompute_->setToolTip(
      QStringLiteral("Where the step does not fit: also the smallest recompute with which it does. Takes longer"));
  recompute_->setChecked(true);
  bar_->button()->setObjectName(QStringLiteral("capacity_plan"));
  auto* fields = new QHBoxLayout;
  fields->addWidget(dimension_);
  fields->addWidget(most_);
  fields->addWidget(memory_, 1);
  fields->addWidget(recompute_);
  fields->addWidget(bar_->button());
  rows->addLayout(fields);
  for (QWidget* each : std::initializer_list<QWidget*>{bar_, summary_}) rows->addWidget(each);
  return top;
}

QString CapacityView::emptyText() const {
  if (store().readOnly())
    return QStringLiteral("A recorded project.\nA running worker plans: open the model itself (Ctrl+O).");
  if (!store().plan())
    return QStringLiteral(
        "No plan yet.\nOpen a model (Ctrl+O) and build its training step: how large its batches may be is planned here.");
  return {};
}

void CapacityView::takeModel() {
  dimension_->clear();
  if (const ModelPtr& model = store().model())
    for (const auto& d : model->dimensions())
      if (!d.fixed()) dimension_->addItem(format::visible(d.name()), QString::fromStdString(d.name()));
  if (dimension_->count() == 0) dimension_->addItem(QStringLiteral("as it is"), QString());
  follow();
}

void CapacityView::plan() {
  snapshot::GetCapacity question;
  question.set_dimension(dimension_->currentData().toString().toStdString());
  question.set_least(1);
  question.set_most(most_->value());
  question.set_memory_bytes(format::bytesOf(memory_->text().trimmed()).value_or(0));
  question.set_recompute(recompute_->isChecked());
  emit wishes().planCapacity(question);
}

void CapacityView::refill() {
  const auto& report = store().findings().capacity().report();
  setColumns(capacity::columns(report ? *report : snapshot::CapacityReport()),
             report ? capacity::rows(*report) : std::vector<TableRow>());
  if (report) plot_->show(*report);
  follow();
}

QString CapacityView::fault() const {
  const QString asked = memory_->text().trimmed();
  const auto bytes = format::bytesOf(asked);
  if (asked.isEmpty() || (bytes && *bytes > 0)) return {};
  return QStringLiteral("memory '%1': no size; expected one such as 24GiB or 755 MiB").arg(asked);
}

void CapacityView::follow() {
  const auto& study = store().findings().capacity();
  const bool alive = store().plan() && !store().readOnly() && store().workerState() != WorkerState::kDead;
  const std::int64_t machine = store().machine() ? store().machine()->memory_bytes() : 0;
  memory_->setPlaceholderText(machine > 0 ? QStringLiteral("Memory: %1, this machine's").arg(format::bytes(machine))
                                          : QStringLiteral("Memory: this machine's"));
  for (QWidget* field : std::initializer_list<QWidget*>{dimension_, most_, memory_, recompute_})
    allow(store(), field, alive && !study.running());
  const bool varies = !dimension_->currentData().toString().isEmpty();
  most_->setEnabled(most_->isEnabled() && varies);
  const QString wrong = fault();
  bar_->follow(alive && wrong.isEmpty(), wrong);
  allow(store(), bar_->button(), bar_->button()->isEnabled());
  const auto& report = study.report();
  say(summary_, report ? capacity::summary(*report) : QString(), QString());
  summary_->setToolTip(
      report ? QStringLiteral("Times by the roofline of this machine: %1").arg(format::visible(report->peaks()))
             : QString());
  showPlot();
  setNothingText(
      QStringLiteral("Nothing planned yet.\n“Plan” makes plans of the step for larger and larger extents, until "
                     "one does not fit; nothing runs."));
  emit emptyChanged();
}

// In a low panel the table says the same and can be read; the curve would be a line between its axes.
void CapacityView::showPlot() {
  constexpr int kLeastUnits = 26;
  const auto& report = store().findings().capacity().report();
  plot_->setVisible(report && !report->dimension().empty() && report->points_size() > 1 &&
                    height() >= kLeastUnits * Metrics::current().unit);
}

void CapacityView::resizeEvent(QResizeEvent* event) {
  TablePanel::resizeEvent(event);
  showPlot();
}

void CapacityView::changeEvent(QEvent* event) {
  TablePanel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && plot_) plot_->colour();
}

}  // namespace stepscope
