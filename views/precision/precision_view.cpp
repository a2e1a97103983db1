// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/precision/precision_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSortFilterProxyModel>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"
#include "views/precision/exponent_delegate.h"
#include "views/precision/precision_rows.h"

namespace stepscope {

PrecisionView::PrecisionView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("precision"), QStringLiteral("Precision"), parent),
      precision_(new QComboBox),
      study_(new QPushButton(QStringLiteral("Study"))),
      apply_(new QPushButton(QStringLiteral("Apply override"))),
      summary_(textLine("")),
      stale_(textLine("warn")),
      problem_(textLine("error")),
      proof_(textLine("muted")),
      pages_(new QButtonGroup(this)),
      stack_(new QStackedWidget),
      exponents_(new ExponentDelegate(this)) {
  const Metrics m = Metrics::current();
  nodes_ = makePage(QStringLiteral("precision_nodes"), QStringLiteral("Nodes that add most to the error"));
  classes_ = makePage(QStringLiteral("precision_classes"), QStringLiteral("Classes of tensors"));
  gradients_ = makePage(QStringLiteral("precision_gradients"), QStringLiteral("Gradients of parameters"));
  classes_.table->setItemDelegateForColumn(precision::kExponents, exponents_);
  classes_.table->verticalHeader()->setDefaultSectionSize(qRound(3.2 * m.unit));
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(makeControls());
  all->addWidget(stack_, 1);

  connect(study_, &QPushButton::clicked, this, &PrecisionView::study);
  connect(apply_, &QPushButton::clicked, this, &PrecisionView::apply);
  connect(nodes_.table, &QTableView::activated, this, &PrecisionView::apply);
  connect(nodes_.table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &PrecisionView::follow);
  connect(precision_, &QComboBox::activated, this, [this] { chosen_ = true; });
  connect(&store().findings(), &Findings::precisionChanged, this, &PrecisionView::takeReport);
  connect(&store().findings(), &Findings::optionProofChanged, this, &PrecisionView::tellProof);
  connect(&store(), &SnapshotStore::planChanged, this, &PrecisionView::takeReport);  // rows lead to other nodes
  connect(&store(), &SnapshotStore::optionsChanged, this, &PrecisionView::follow);
  connect(&store(), &SnapshotStore::positionChanged, this, &PrecisionView::follow);
  connect(&store(), &SnapshotStore::workerChanged, this, &PrecisionView::follow);
  takeReport();
}

PrecisionView::Page PrecisionView::makePage(const QString& id, const QString& name) {
  Page page{new RowTableModel({}, this), new RowTableView};
  auto* sorted = new QSortFilterProxyModel(this);
  sorted->setSourceModel(page.model);
  sorted->setSortRole(RowTableModel::kSortRole);
  page.table->setModel(sorted);
  page.table->setSortingEnabled(true);
  sorted->sort(-1);  // as the study ranks them, until a header is clicked
  page.table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  page.table->setObjectName(id);
  page.table->setAccessibleName(name);
  connect(page.table, &RowTableView::chosen, this, [this, page, sorted](const QModelIndex& now) {
    const TableRow& row = page.model->row(sorted->mapToSource(now).row());
    if (!row.target.empty()) selection().select(row.target);
  });
  stack_->addWidget(page.table);
  return page;
}

QWidget* PrecisionView::makeControls() {
  const Metrics m = Metrics::current();
  auto* panel = new QWidget;
  auto* rows = new QVBoxLayout(panel);
  rows->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  rows->setSpacing(qRound(0.35 * m.unit));
  precision_->addItems({QStringLiteral("bf16"), QStringLiteral("fp16")});
  precision_->setObjectName(QStringLiteral("precision_choice"));
  precision_->setAccessibleName(QStringLiteral("Precision to study"));
  precision_->setToolTip(QStringLiteral("The precision that is compared with float32; the run itself stays as it is"));
  study_->setObjectName(QStringLiteral("precision_study"));
  apply_->setObjectName(QStringLiteral("precision_apply"));
  auto* top = new QHBoxLayout;
  top->setSpacing(qRound(0.5 * m.unit));
  top->addWidget(precision_);
  top->addWidget(study_);
  top->addSpacing(m.padding);
  int page = 0;
  for (const auto& [text, tip] :
       {std::pair(QStringLiteral("Nodes"), QStringLiteral("Where the error comes from, and which override would help")),
        std::pair(QStringLiteral("Tensors"), QStringLiteral("How the numbers lie in the range of their type")),
        std::pair(QStringLiteral("Gradients"), QStringLiteral("What arrives at each parameter"))}) {
    auto* button = new QToolButton;
    button->setText(text);
    button->setToolTip(tip);
    button->setCheckable(true);
    button->setChecked(page == 0);
    pages_->addButton(button, page++);
    top->addWidget(button);
  }
  connect(pages_, &QButtonGroup::idClicked, stack_, &QStackedWidget::setCurrentIndex);
  connect(pages_, &QButtonGroup::idClicked, this, &PrecisionView::follow);
  top->addStretch(1);
  top->addWidget(apply_);
  rows->addLayout(top);
  for (QLabel* label : {summary_, stale_, problem_, proof_}) rows->addWidget(label);
  proof_->setToolTip(QStringLiteral(
      "The step was run with the plan before the last change of options and with the one after it, from one state: what "
      "both made, compared bit for bit"));
  return panel;
}

QString PrecisionView::headerText() const {
  const auto& report = store().findings().precision();
  return report ? QStringLiteral("%1 against fp32").arg(format::visible(report->precision())) : QString();
}

QString PrecisionView::emptyText() const {
  if (store().readOnly())
    return QStringLiteral("A recorded project.\nPrecision is studied by a running worker: open the model itself (Ctrl+O).");
  if (!store().plan())
    return QStringLiteral(
        "No plan yet.\nOpen a model (Ctrl+O) and build its training step: what bf16 or fp16 would cost and risk appears "
        "here.");
  return {};
}

QString PrecisionView::option(const char* name) const {
  for (const auto& o : store().options())
    if (o.name() == name) return QString::fromStdString(o.value());
  return {};
}

void PrecisionView::study() {
  if (study_->isEnabled()) emit wishes().studyPrecision(precision_->currentText());
}

int PrecisionView::chosenNode() const {
  const auto& report = store().findings().precision();
  const QModelIndexList chosen = nodes_.table->selectionModel()->selectedRows();
  if (!report || chosen.isEmpty() || stack_->currentWidget() != nodes_.table) return -1;
  const int at = chosen.front().data(RowTableModel::kKeyRole).toInt();
  return at >= 0 && at < report->nodes_size() ? at : -1;
}

// The new override stands first: the first match counts. With the precision that it was measured in.
void PrecisionView::apply() {
  const int at = chosenNode();
  if (at < 0 || !apply_->isEnabled()) return;
  const auto& report = *store().findings().precision();
  const QString setting = QString::fromStdString(report.nodes(at).override()), present = option("precision.force");
  // Two wishes of one turn of the event loop are one change.
  emit wishes().setOption(QStringLiteral("precision"), QString::fromStdString(report.precision()));
  emit wishes().setOption(QStringLiteral("precision.force"), present.isEmpty() ? setting : setting + ' ' + present);
}

void PrecisionView::takeReport() {
  const auto& report = store().findings().precision();
  exponents_->setReport(report);
  const GraphSnapshot* graph = store().graph().get();
  const auto [first, last] = exponents_->axis();
  const auto fill = [](const Page& page, std::vector<TableColumn> columns, std::vector<TableRow> rows) {
    const bool same = page.model->columnCount() == static_cast<int>(columns.size());
    page.model->setColumns(columns, std::move(rows));
    if (!same) page.table->sizeColumns(columns);
  };
  fill(classes_, precision::classColumns(first, last), report ? precision::classRows(*report) : std::vector<TableRow>());
  fill(nodes_, precision::nodeColumns(), report ? precision::nodeRows(*report, graph) : std::vector<TableRow>());
  fill(gradients_, precision::gradientColumns(), report ? precision::gradientRows(*report, graph) : std::vector<TableRow>());
  if (report && report->nodes_size() > 0) nodes_.table->selectRow(0);
  QString role;
  const QString text = report ? precision::summary(*report, &role) : QString();
  say(summary_, text, role);
  tellProof();
  follow();
  emit emptyChanged();
  emit headerChanged();
}

// Of what the study led to: without one it would take the room of the words that say how to make one.
void PrecisionView::tellProof() {
  QString role;
  const QString text = store().findings().precision() ? store().findings().optionProofText(&role) : QString();
  say(proof_, text, role);
}

void PrecisionView::follow() {
  const Findings& findings = store().findings();
  const auto& report = findings.precision();
  const QString present = option("precision");
  if (!chosen_ && precision_->findText(present) >= 0) precision_->setCurrentText(present);
  const bool alive = store().plan() && !store().readOnly() && store().workerState() != WorkerState::kDead;
  study_->setText(findings.studiesPrecision() ? QStringLiteral("Studying …") : QStringLiteral("Study"));
  study_->setToolTip(
      QStringLiteral("Runs the present step in this precision and in float32, from one state and one batch, then again "
                     "with the overrides that may help. The run stays where it is; Esc cancels"));
  allow(store(), study_, alive && !findings.studiesPrecision());
  const int node = chosenNode();
  const QString setting = node >= 0 ? QString::fromStdString(report->nodes(node).override()) : QString();
  const bool applied = node >= 0 && present == QString::fromStdString(report->precision()) &&
                       (' ' + option("precision.force") + ' ').contains(' ' + setting + ' ');
  apply_->setVisible(stack_->currentWidget() == nodes_.table);
  apply_->setToolTip(
      node < 0  ? QStringLiteral("Choose a node below")
      : applied ? QStringLiteral("It is applied")
                : QStringLiteral("Sets precision = %1 and precision.force = %2, at once, in a paused step too; Ctrl+Z takes "
                                 "it back")
                      .arg(format::visible(report->precision()), format::visible(setting)));
  allow(store(), apply_, alive && node >= 0 && !applied && !findings.studiesPrecision());
  say(problem_, format::visible(findings.precisionProblem()), QStringLiteral("error"));
  QStringList other;
  if (report) {
    if (report->step() != store().position().step()) other << QStringLiteral("of step %1").arg(report->step());
    if (QString::fromStdString(report->forced()) != option("precision.force"))
      other << (report->forced().empty()
                    ? QStringLiteral("without an override")
                    : QStringLiteral("with precision.force = %1").arg(format::visible(report->forced())));
  }
  say(stale_,
      other.isEmpty()
          ? QString()
          : QStringLiteral("This study is %1; “Study” makes one of now").arg(other.join(QStringLiteral(" and "))),
      QStringLiteral("warn"));
  const QString nothing =
      report ? QStringLiteral("Nothing of this kind was found.")
      : findings.studiesPrecision()
          ? QStringLiteral("Studying: the step runs in %1 and in float32 …").arg(precision_->currentText())
          : QStringLiteral(
                "Nothing studied yet.\nChoose bf16 or fp16 and press “Study”: the present step, paused or between two, is "
                "run in it and in float32.");
  for (const Page& page : {classes_, gradients_}) page.table->setEmptyText(nothing);
  nodes_.table->setEmptyText(report ? QStringLiteral("No node adds an error that an override could take away.") : nothing);
}

void PrecisionView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) classes_.table->viewport()->update();
}

}  // namespace stepscope
