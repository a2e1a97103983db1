// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/ledger/ledger_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QRegularExpression>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"
#include "views/ledger/spent_bars.h"

namespace stepscope {
namespace {

constexpr int kMostAdviceRows = 5;  // that are seen without scrolling

}  // namespace

LedgerView::LedgerView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("ledger"), QStringLiteral("Ledger"), ledger::columns(ledger::By::kModule), parent),
      bar_(new StudyBar("ledger", store().findings().ledger(), wishes(),
                        {QStringLiteral("Measure"),
                         QStringLiteral("Runs the present step a few times beside the run, which stays where it is, and "
                                        "shows the one with the median time; Esc cancels"),
                         QStringLiteral("Ends it; the ledger before stays (Esc)"),
                         QStringLiteral("Steps that were measured"),
                         {}})),
      confirm_(new QPushButton(QStringLiteral("Confirm by a trial"))),
      by_(new QComboBox),
      summary_(textLine("", "ledger_summary")),
      warning_(textLine("warn", "ledger_warning")),
      noAdvice_(textLine("muted", "ledger_no_advice")),
      bars_(new SpentBars),
      adviceModel_(new RowTableModel(ledger::adviceColumns(), this)),
      adviceTable_(new RowTableView) {
  setFilterPlaceholder(QStringLiteral("Filter lines"));
  body()->insertWidget(0, makeTop());
  body()->addWidget(makeAdvice());
  const auto& study = store().findings().ledger();
  connect(&study, &Study::changed, this, [this] {
    if (!store().findings().ledger().running()) refillLater();
    follow();
  });
  connect(bar_, &StudyBar::startWanted, this, [this] { emit wishes().measureLedger(); });
  connect(by_, &QComboBox::currentIndexChanged, this, &LedgerView::refillLater);
  connect(confirm_, &QPushButton::clicked, this, &LedgerView::confirm);
  connect(adviceTable_, &QTableView::activated, this, &LedgerView::confirm);
  connect(adviceTable_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &LedgerView::follow);
  connect(&store(), &SnapshotStore::planChanged, this, &LedgerView::refillLater);  // rows lead to other nodes
  connect(&store(), &SnapshotStore::planChanged, this, &LedgerView::follow);
  connect(&store(), &SnapshotStore::workerChanged, this, &LedgerView::follow);
  follow();
}

QWidget* LedgerView::makeTop() {
  const Metrics m = Metrics::current();
  auto* top = new QWidget;
  auto* rows = new QVBoxLayout(top);
  rows->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  rows->setSpacing(qRound(0.35 * m.unit));
  bar_->button()->setObjectName(QStringLiteral("ledger_measure"));
  by_->setObjectName(QStringLiteral("ledger_by"));
  by_->setAccessibleName(QStringLiteral("Sum by"));
  by_->setToolTip(QStringLiteral("What the lines are summed by"));
  for (QWidget* each : std::initializer_list<QWidget*>{bar_->button(), by_})
    each->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
  for (const ledger::By by : ledger::kAll) by_->addItem(ledger::title(by));
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(bar_->button());
  buttons->addWidget(by_);
  buttons->addWidget(summary_, 1);
  buttons->addStretch(0);
  rows->addLayout(buttons);
  for (QWidget* each : std::initializer_list<QWidget*>{bar_, warning_, bars_}) rows->addWidget(each);
  return top;
}

QWidget* LedgerView::makeAdvice() {
  const Metrics m = Metrics::current();
  advice_ = new QWidget;
  auto* rows = new QVBoxLayout(advice_);
  rows->setContentsMargins(0, 0, 0, qRound(0.4 * m.unit));
  rows->setSpacing(qRound(0.35 * m.unit));
  adviceTable_->setModel(adviceModel_);
  adviceTable_->setObjectName(QStringLiteral("ledger_advice"));
  adviceTable_->setAccessibleName(QStringLiteral("What would shrink the step"));
  adviceTable_->setSelectionMode(QAbstractItemView::SingleSelection);
  adviceTable_->sizeColumns(ledger::adviceColumns());
  confirm_->setObjectName(QStringLiteral("ledger_confirm"));
  auto* buttons = new QHBoxLayout;
  buttons->setContentsMargins(m.padding, 0, m.padding, 0);
  buttons->addWidget(confirm_);
  buttons->addWidget(noAdvice_, 1);
  buttons->addStretch(0);
  rows->addWidget(adviceTable_);
  rows->addLayout(buttons);
  return advice_;
}

ledger::By LedgerView::by() const { return ledger::kAll[static_cast<std::size_t>(std::max(0, by_->currentIndex()))]; }

QString LedgerView::headerText() const {
  const auto& report = store().findings().ledger().report();
  return report ? format::time(report->ns()) : QString();
}

QString LedgerView::emptyText() const {
  const bool any = store().findings().ledger().report() != nullptr;
  if (store().readOnly())
    return any ? QString()
               : QStringLiteral(
                     "No ledger was recorded with this run.\nA running worker measures one: open the model itself "
                     "(Ctrl+O).");
  if (!store().plan())
    return QStringLiteral(
        "No plan yet.\nOpen a model (Ctrl+O) and build its training step: what it is spent on is measured here.");
  return {};
}

QString LedgerView::saveState() const { return by_->currentText(); }

void LedgerView::restoreState(const QString& state) {
  if (const int at = by_->findText(state); at >= 0) by_->setCurrentIndex(at);
}

void LedgerView::refill() {
  const auto& report = store().findings().ledger().report();
  setColumns(ledger::columns(by()), report ? ledger::rows(*report, by(), store().plan().get()) : std::vector<TableRow>());
  bars_->show(report ? ledger::sums(*report) : std::vector<ledger::Sum>());
  adviceModel_->setRows(report ? ledger::adviceRows(*report) : std::vector<TableRow>());
  const int count = adviceModel_->rowCount();
  adviceTable_->setVisible(count > 0);
  adviceTable_->setFixedHeight(adviceTable_->horizontalHeader()->sizeHint().height() +
                               std::min(count, kMostAdviceRows) * Metrics::current().row + 2);
  if (count > 0) adviceTable_->selectRow(0);
  follow();
}

const snapshot::LedgerAdvice* LedgerView::chosen() const {
  const auto& report = store().findings().ledger().report();
  const QModelIndexList rows = adviceTable_->selectionModel()->selectedRows();
  if (!report || rows.isEmpty()) return nullptr;
  const int at = rows.front().data(RowTableModel::kKeyRole).toInt();
  return at >= 0 && at < report->advice_size() ? &report->advice(at) : nullptr;
}

void LedgerView::confirm() {
  const snapshot::LedgerAdvice* advice = chosen();
  if (!advice || !confirm_->isEnabled()) return;
  snapshot::GetTrials question;
  const QString change = QString::fromStdString(advice->option() + '=' + advice->value());
  question.set_only(QStringLiteral("^%1$").arg(QRegularExpression::escape(change)).toStdString());
  emit wishes().command(QStringLiteral("view_trials"));
  emit wishes().tryOptions(question);
}

void LedgerView::follow() {
  const auto& study = store().findings().ledger();
  const auto& report = study.report();
  const bool alive = store().plan() && !store().readOnly() && store().workerState() != WorkerState::kDead;
  bar_->button()->setVisible(!store().readOnly());
  bar_->follow(alive);
  allow(store(), bar_->button(), bar_->button()->isEnabled());
  QString text;
  QString role = QStringLiteral("muted");
  if (report) {
    text = QStringLiteral("Step %1").arg(report->step());
    if (report->steps() > 1) text += QStringLiteral(", the median of %1 beside the run").arg(report->steps());
    if (study.recorded()) text += QStringLiteral(", recorded with this run");
    if (store().plan() && store().plan()->plan().signature() != report->signature() && !store().readOnly()) {
      text += QStringLiteral("; of a plan for other shapes: “Measure” measures the present one");
      role = QStringLiteral("warn");
    }
  }
  say(summary_, text, role);
  say(warning_, report ? ledger::warning(*report) : QString(), QStringLiteral("warn"));
  const snapshot::LedgerAdvice* advice = chosen();
  advice_->setVisible(report != nullptr);
  confirm_->setVisible(report && report->advice_size() > 0 && !store().readOnly());
  confirm_->setToolTip(!advice ? QStringLiteral("Choose a line above")
                       : advice->option().empty()
                           ? QStringLiteral("No option does it: the batch or the model would have to change")
                           : QStringLiteral("Measures the step with %1 = %2 next to the step as it is (view Options: "
                                            "trials), where it can be applied")
                                 .arg(format::visible(advice->option()), format::visible(advice->value())));
  allow(store(), confirm_, alive && advice && !advice->option().empty() && !study.running());
  say(noAdvice_,
      report && report->advice_size() == 0
          ? QStringLiteral("Nothing that an option or another batch would shrink takes 1 % of the step.")
          : QString(),
      QStringLiteral("muted"));
  setNothingText(
      QStringLiteral("Nothing measured yet.\n“Measure” runs the present step a few times beside the run: its "
                     "operations, bytes and time appear here, each in one place."));
  emit headerChanged();
  emit emptyChanged();
}

void LedgerView::changeEvent(QEvent* event) {
  TablePanel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && bars_) bars_->update();
}

}  // namespace stepscope
