// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/trials/trials_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSignalBlocker>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QVBoxLayout>
#include <utility>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"
#include "views/trials/interval_delegate.h"
#include "views/trials/trial_rows.h"
#include "views/trials/why_panel.h"

namespace stepscope {
namespace {

constexpr int kFewestRounds = 6, kMostRounds = 100'000, kMostSeconds = 86'400;

// A field whose least number means that nothing was chosen.
QSpinBox* numberField(const char* id, const QString& name, const QString& none, int least, int most, const QString& suffix) {
  auto* field = new QSpinBox;
  field->setObjectName(QLatin1String(id));
  field->setAccessibleName(name);
  field->setRange(least - 1, most);
  field->setSpecialValueText(none);
  field->setSuffix(suffix);
  return field;
}

}  // namespace

TrialsView::TrialsView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("trials"), QStringLiteral("Options: trials"), parent),
      only_(new QLineEdit),
      rounds_(numberField("trials_rounds", QStringLiteral("Rounds"), QStringLiteral("Rounds: 40 or 16"), kFewestRounds,
                          kMostRounds, QStringLiteral(" rounds"))),
      seconds_(numberField("trials_seconds", QStringLiteral("Seconds"), QStringLiteral("No time limit"), 1, kMostSeconds,
                           QStringLiteral(" s in all"))),
      bar_(new StudyBar(
          "trials", store().findings().trials(), wishes(),
          {QStringLiteral("Try options"),
           QStringLiteral(
               "Runs the present step and the same step with each option changed, in turns, from one state and on "
               "the same batches. The run stays where it is; Esc cancels and keeps what was measured"),
           QStringLiteral("Ends it with what was measured so far (Esc)"), QStringLiteral("Changes that were tried"),
           QStringLiteral("Building and measuring the step as it is …")})),
      apply_(new QPushButton(QStringLiteral("Apply"))),
      why_(new QToolButton),
      summary_(textLine("", "trials_summary")),
      stale_(textLine("warn", "trials_stale")),
      proof_(textLine("muted", "trials_proof")),
      halves_(new QSplitter(Qt::Vertical)),
      model_(new RowTableModel({}, this)),
      sorted_(new QSortFilterProxyModel(this)),
      table_(new RowTableView),
      intervals_(new IntervalDelegate(this)),
      reasons_(new WhyPanel(context)) {
  makeTable();
  halves_->setHandleWidth(1);
  halves_->setChildrenCollapsible(false);
  halves_->addWidget(table_);
  halves_->addWidget(reasons_);
  halves_->setStretchFactor(0, 3);
  halves_->setStretchFactor(1, 2);
  reasons_->hide();
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(makeControls());
  all->addWidget(halves_, 1);

  const OptionTrials& trials = store().findings().trials();
  connect(&trials, &OptionTrials::changed, this, &TrialsView::takeReport);
  connect(bar_, &StudyBar::startWanted, this, &TrialsView::start);
  connect(only_, &QLineEdit::returnPressed, this, [this, &trials] {
    if (!trials.running()) bar_->press();
  });
  connect(apply_, &QPushButton::clicked, this, &TrialsView::apply);
  connect(table_, &QTableView::activated, this, &TrialsView::apply);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &TrialsView::follow);
  connect(why_, &QToolButton::toggled, reasons_, &QWidget::setVisible);
  connect(why_, &QToolButton::toggled, this, &TrialsView::follow);
  connect(rounds_, &QSpinBox::valueChanged, this, [this](int) {
    if (rounds_->value() >= kFewestRounds) seconds_->setValue(0);
  });
  connect(seconds_, &QSpinBox::valueChanged, this, [this](int) {
    if (seconds_->value() > 0) rounds_->setValue(kFewestRounds - 1);
  });
  const auto tellProof = [this] {
    QString role;
    const QString text = store().findings().optionProofText(&role);
    say(proof_, text, role);
  };
  connect(&store().findings(), &Findings::optionProofChanged, this, tellProof);
  tellProof();  // of a change that was made before the view was opened
  connect(&store(), &SnapshotStore::planChanged, this, [this] {
    follow();
    emit emptyChanged();
  });
  connect(&store(), &SnapshotStore::optionsChanged, this, &TrialsView::follow);
  connect(&store(), &SnapshotStore::workerChanged, this, &TrialsView::follow);
  takeReport();
}

void TrialsView::makeTable() {
  sorted_->setSourceModel(model_);
  sorted_->setSortRole(RowTableModel::kSortRole);
  table_->setModel(sorted_);
  table_->setSortingEnabled(true);
  sorted_->sort(-1);  // as they are ranked, until a header is clicked
  table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  table_->setObjectName(QStringLiteral("trials_list"));
  table_->setAccessibleName(QStringLiteral("Options, the fastest first"));
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setItemDelegateForColumn(trials::kInterval, intervals_);
}

QWidget* TrialsView::makeControls() {
  const Metrics m = Metrics::current();
  auto* panel = new QWidget;
  auto* rows = new QVBoxLayout(panel);
  rows->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  rows->setSpacing(qRound(0.35 * m.unit));
  only_->setObjectName(QStringLiteral("trials_only"));
  only_->setAccessibleName(QStringLiteral("Which changes"));
  only_->setPlaceholderText(QStringLiteral("All, or a pattern"));
  only_->setToolTip(QStringLiteral("A regular expression, searched in OPTION=VALUE: only those changes are tried"));
  only_->setClearButtonEnabled(true);
  rounds_->setToolTip(QStringLiteral(
      "Pairs of steps for each change; 6 or more, fewer have no interval of 95 %. By itself 40, or 16 where a step takes "
      "more than 0.2 s"));
  seconds_->setToolTip(QStringLiteral("Instead of rounds: how long to measure in all"));
  bar_->button()->setObjectName(QStringLiteral("trials_start"));
  apply_->setObjectName(QStringLiteral("trials_apply"));
  why_->setObjectName(QStringLiteral("trials_show_why"));
  why_->setText(QStringLiteral("Why"));
  why_->setToolTip(QStringLiteral("What the option does, where its pass applied, where it almost did and why not"));
  why_->setCheckable(true);
  auto* top = new QHBoxLayout;
  top->setSpacing(qRound(0.5 * m.unit));
  top->addWidget(only_, 1);
  top->addWidget(rounds_);
  top->addWidget(seconds_);
  top->addWidget(bar_->button());
  top->addSpacing(m.padding);
  top->addWidget(why_);
  top->addWidget(apply_);
  rows->addLayout(top);
  for (QWidget* each : std::initializer_list<QWidget*>{bar_, summary_, stale_, proof_}) rows->addWidget(each);
  proof_->setToolTip(QStringLiteral(
      "The step was run with the plan before the last change of options and with the one after it, from one state: what "
      "both made, compared bit for bit"));
  return panel;
}

QString TrialsView::headerText() const {
  const auto& report = store().findings().trials().report();
  return report.trials_size() > 0 ? format::count(report.trials_size()) : QString();
}

QString TrialsView::emptyText() const {
  const bool any = store().findings().trials().report().trials_size() > 0;
  if (store().readOnly())
    return any ? QString()
               : QStringLiteral(
                     "No trials were recorded with this run.\nA running worker tries options: open the model itself "
                     "(Ctrl+O).");
  if (!store().plan())
    return QStringLiteral(
        "No plan yet.\nOpen a model (Ctrl+O) and build its training step: what every option would give is measured "
        "here.");
  return {};
}

void TrialsView::find() {
  only_->setFocus();
  only_->selectAll();
}

void TrialsView::start() {
  snapshot::GetTrials question;
  question.set_only(only_->text().trimmed().toStdString());
  if (rounds_->value() >= kFewestRounds) question.set_rounds(rounds_->value());
  if (seconds_->value() > 0) question.set_seconds(seconds_->value());
  emit wishes().tryOptions(question);
}

const snapshot::Trial* TrialsView::chosen() const {
  const auto& report = store().findings().trials().report();
  const QModelIndexList rows = table_->selectionModel()->selectedRows();
  if (rows.isEmpty()) return nullptr;
  const int at = rows.front().data(RowTableModel::kKeyRole).toInt();
  return at >= 0 && at < report.trials_size() ? &report.trials(at) : nullptr;
}

const snapshot::Option* TrialsView::optionOf(const snapshot::Trial& trial) const {
  for (const auto& o : store().options())
    if (o.name() == trial.option()) return &o;
  return nullptr;
}

QString TrialsView::refusal(const snapshot::Trial* trial) const {
  if (!trial) return QStringLiteral("Choose a change below");
  if (store().readOnly()) return QStringLiteral("A recorded project: it can be looked at, not changed");
  if (trial->option() == trials::kNothing) return QStringLiteral("The plan next to itself: there is nothing to apply");
  const snapshot::Option* option = optionOf(*trial);
  if (!option) return QStringLiteral("The set-up has this one (Ctrl+Shift+O)");
  if (option->value() == trial->to()) return QStringLiteral("It is applied");
  return {};
}

void TrialsView::apply() {
  const snapshot::Trial* trial = chosen();
  if (!refusal(trial).isEmpty() || !apply_->isEnabled()) return;
  emit wishes().setOption(QString::fromStdString(trial->option()), QString::fromStdString(trial->to()));
}

void TrialsView::takeReport() {
  const OptionTrials& trials = store().findings().trials();
  const auto& report = trials.report();
  // Progress between two trials is told often, and changes no row.
  const auto now = std::pair(trials.running(), report.trials_size());
  if (trials.running() && std::exchange(shown_, now) == now) return follow();
  shown_ = now;
  const snapshot::Trial* before = chosen();
  const std::string option = before ? before->option() + '=' + before->to() : std::string();
  intervals_->setReport(report);
  const auto [first, last] = ratioAxis(report);
  const std::vector<TableColumn> columns = trials::columns(first, last);
  const bool same = model_->columnCount() == static_cast<int>(columns.size());
  {
    const QSignalBlocker quiet(table_->selectionModel());
    model_->setColumns(columns, trials::rows(report, store().options(), trials.running()));
    if (!same) table_->sizeColumns(columns);
  }
  // The one that was chosen stays chosen wherever it is ranked now.
  for (int i = 0; i < report.trials_size() && !option.empty(); ++i) {
    if (report.trials(i).option() + '=' + report.trials(i).to() != option) continue;
    for (int row = 0; row < sorted_->rowCount(); ++row)
      if (sorted_->index(row, 0).data(RowTableModel::kKeyRole).toInt() == i) table_->selectRow(row);
    break;
  }
  if (!chosen() && !trials.running() && sorted_->rowCount() > 0) table_->selectRow(0);
  QString role;
  const QString text = trials::summary(report, trials.running(), &role);
  say(summary_, text, role);
  follow();
  emit emptyChanged();
  emit headerChanged();
}

void TrialsView::follow() {
  const OptionTrials& trials = store().findings().trials();
  const auto& report = trials.report();
  const bool alive = store().plan() && !store().readOnly() && store().workerState() != WorkerState::kDead;
  for (QWidget* field : std::initializer_list<QWidget*>{only_, rounds_, seconds_, bar_->button()})
    field->setVisible(!store().readOnly());
  for (QWidget* field : std::initializer_list<QWidget*>{only_, rounds_, seconds_})
    allow(store(), field, alive && !trials.running());
  bar_->follow(alive);
  allow(store(), bar_->button(), bar_->button()->isEnabled());
  QStringList applied;
  for (const auto& trial : report.trials()) {
    const snapshot::Option* o = optionOf(trial);
    if (o && trial.from() != trial.to() && o->value() == trial.to()) applied << trials::change(trial, store().options());
  }
  say(stale_,
      applied.isEmpty() || store().readOnly()
          ? QString()
          : QStringLiteral("Applied since: %1. The others were measured without it; “Try options” measures them anew")
                .arg(applied.join(QStringLiteral(", "))),
      QStringLiteral("warn"));
  const snapshot::Trial* trial = chosen();
  const QString refused = refusal(trial);
  apply_->setVisible(!store().readOnly());
  apply_->setToolTip(refused.isEmpty()
                         ? QStringLiteral("Sets %1 = %2 at once, in a paused step too, with a proof of what changes; Ctrl+Z "
                                          "takes it back")
                               .arg(format::visible(trial->option()), format::visible(trial->to()))
                         : refused);
  allow(store(), apply_, alive && refused.isEmpty());
  if (why_->isChecked()) reasons_->show(trial);
  table_->setEmptyText(trials.running()
                           ? QStringLiteral("The first change is measured next; each appears here as soon as it is.")
                           : QStringLiteral("Nothing tried yet.\n“Try options” changes every option in turn and measures "
                                            "the step with it next to the step as it is."));
}

void TrialsView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) table_->viewport()->update();
}

}  // namespace stepscope
