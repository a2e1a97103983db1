// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/recompute/recompute_view.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"
#include "views/recompute/pareto_plot.h"
#include "views/recompute/pattern_model.h"
#include "views/recompute/plan_entries.h"

namespace stepscope {
namespace {

constexpr int kAskAfterMs = 150, kRefreshAfterMs = 500;

std::int64_t whole(double x) { return std::isfinite(x) ? static_cast<std::int64_t>(std::clamp(x, -9e18, 9e18)) : 0; }

}  // namespace

RecomputeView::RecomputeView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("recompute"), QStringLiteral("Recompute"), parent),
      model_(new PatternModel(this)),
      table_(new RowTableView),
      plot_(new ParetoPlot),
      split_(new QSplitter(Qt::Horizontal)),
      slider_(new QSlider(Qt::Horizontal)),
      budgetText_(new QLineEdit),
      prediction_(new QLabel),
      bar_(new StudyBar(
          "recompute", store().findings().recomputeStudy(), wishes(),
          {QStringLiteral("Judge again"),
           QStringLiteral("Asks the worker again: candidates, curve, and costs from the newest steps"),
           QStringLiteral("Ends it; what was judged before stays (Esc)"), QStringLiteral("Candidates that were judged"),
           QStringLiteral("Judging what may be computed again …")})),
      proof_(textLine("muted", "recompute_proof")),
      kept_(textLine("faint", "recompute_kept")),
      plan_(new QLineEdit),
      copy_(new QPushButton(QStringLiteral("Copy"))),
      reset_(new QPushButton(QStringLiteral("Reset"))),
      apply_(new QPushButton(QStringLiteral("Apply"))) {
  bar_->button()->setObjectName(QStringLiteral("recompute_refresh"));
  bar_->button()->hide();  // until it stands in the header
  auto* left = new QWidget;
  auto* column = new QVBoxLayout(left);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(makeTable(), 1);
  column->addWidget(makeControls());
  // In a low panel the table gives way first: what it would like to be tall is not asked for. Then the controls are reached
  // by scrolling instead of being pressed flat.
  table_->setMinimumHeight(5 * Metrics::current().unit);
  table_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidget(left);
  scroll_ = scroll;
  split_->addWidget(scroll);
  split_->addWidget(plot_);
  scroll->setMinimumWidth(20 * Metrics::current().unit);
  plot_->setMinimumWidth(16 * Metrics::current().unit);
  split_->setStretchFactor(0, 3);
  split_->setStretchFactor(1, 2);
  split_->setSizes({600, 400});  // shares
  split_->setChildrenCollapsible(false);
  split_->setHandleWidth(1);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(split_);

  askLater_.setSingleShot(true);
  refreshLater_.setSingleShot(true);
  connect(&askLater_, &QTimer::timeout, this, &RecomputeView::ask);
  connect(&refreshLater_, &QTimer::timeout, this, &RecomputeView::askAll);
  const auto changed = [this] {
    stale_ = true;
    emit emptyChanged();
    if (isVisible()) refreshLater_.start(kRefreshAfterMs);
  };
  connect(&store(), &SnapshotStore::planChanged, this, changed);
  connect(&store(), &SnapshotStore::stepsChanged, this, changed);
  connect(&store(), &SnapshotStore::workerChanged, this, [this] {
    table_->setEmptyText(tableText());
    followStudy();
  });
  connect(&store().findings().recomputeStudy(), &Study::changed, this, &RecomputeView::followStudy);
  connect(&store(), &SnapshotStore::optionsChanged, this, &RecomputeView::takeOptions);
  connect(&store().findings(), &Findings::recomputeChanged, this, &RecomputeView::takeReport);
  const auto tellProof = [this] {
    QString role;
    const QString text = store().findings().optionProofText(&role);
    // Equal bits are no success where what was asked for is not reached.
    say(proof_, text, role == u"ok" && missesBudget() ? QStringLiteral("muted") : role);
    showPrediction();
  };
  connect(&store().findings(), &Findings::optionProofChanged, this, tellProof);
  connect(bar_, &StudyBar::startWanted, this, [this] {
    stale_ = true;
    askAll();
  });
  connect(plot_, &ParetoPlot::pointPicked, this, [this](int point) {
    const auto& report = store().findings().recompute();
    if (report && point >= 0 && point < report->curve_size() && slider_->isEnabled())
      chooseBudget(point == 0 ? 0 : report->curve(point).peak_bytes());
  });
  colourBoxes();
  takeOptions();
  takeReport();
  tellProof();  // of a change that was made before the view was opened
}

QWidget* RecomputeView::makeTable() {
  auto* sorted = new QSortFilterProxyModel(this);
  sorted->setSourceModel(model_);
  sorted->setSortRole(RowTableModel::kSortRole);
  table_->setModel(sorted);
  table_->setSortingEnabled(true);
  sorted->sort(-1);  // most bytes saved first, until a header is clicked
  table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  table_->sizeColumns(model_->columns());
  table_->setObjectName(QStringLiteral("recompute_table"));
  table_->setAccessibleName(QStringLiteral("Patterns that may be computed again"));
  connect(model_, &PatternModel::ticked, this, [this](const QString& pattern, bool on) {
    plan_->setText(withPlanEntry(plan_->text(), pattern, on ? kAllOccurrences : 0));
  });
  connect(table_, &QTableView::activated, this, [this, sorted](const QModelIndex& at) {
    const QModelIndex box = sorted->mapToSource(at).siblingAtColumn(PatternModel::kPattern);
    model_->setData(box, box.data(Qt::CheckStateRole).toInt() == Qt::Checked ? Qt::Unchecked : Qt::Checked,
                    Qt::CheckStateRole);
  });
  connect(table_, &RowTableView::chosen, this, [this, sorted](const QModelIndex& now) {
    const TableRow& row = model_->row(sorted->mapToSource(now).row());
    if (!filling_ && !row.target.empty()) selection().select(row.target);
  });
  return table_;
}

QWidget* RecomputeView::makeControls() {
  const Metrics m = Metrics::current();
  auto* panel = new QWidget;
  auto* rows = new QVBoxLayout(panel);
  rows->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  rows->setSpacing(qRound(0.35 * m.unit));
  slider_->setAccessibleName(QStringLiteral("Budget of live activations"));
  slider_->setObjectName(QStringLiteral("recompute_budget"));
  slider_->setToolTip(QStringLiteral(
      "Option recompute.budget: while the planned peak is above it, single values and then whole blocks run again, the "
      "cheapest per byte first. At the right end: no budget"));
  slider_->setMinimumWidth(8 * m.unit);
  plan_->setObjectName(QStringLiteral("recompute_plan"));
  plan_->setAccessibleName(QStringLiteral("Plan"));
  plan_->setPlaceholderText(QStringLiteral("PATTERN:1:COUNT,…"));
  plan_->setToolTip(QStringLiteral(
      "Option recompute.plan: what runs again in any case, before the budget. Tick patterns, or paste a plan of ONNX "
      "Runtime's memory optimizer: PATTERN:1:COUNT, separated by commas; -1 counts all"));
  plan_->setClearButtonEnabled(true);
  plan_->setFont(monoFont());
  apply_->setObjectName(QStringLiteral("recompute_apply"));
  apply_->setToolTip(QStringLiteral(
      "At once, in a paused step too. The step is run with both plans to compare the bits; Ctrl+Z takes it back"));
  reset_->setToolTip(QStringLiteral("Back to what is applied"));
  copy_->setToolTip(QStringLiteral("Copies the plan as text. With a budget: what the budget chooses"));
  prediction_->setTextFormat(Qt::PlainText);
  budgetText_->setObjectName(QStringLiteral("recompute_budget_text"));
  budgetText_->setAccessibleName(QStringLiteral("Budget of live activations, in bytes or with a unit"));
  budgetText_->setPlaceholderText(QStringLiteral("none"));
  budgetText_->setMaximumWidth(8 * m.unit);
  budgetText_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  connect(budgetText_, &QLineEdit::textEdited, this, [this](const QString& text) {
    const auto bytes = text.trimmed().isEmpty() ? std::optional<qint64>(0) : format::bytesOf(text);
    if (bytes) return chooseBudget(*bytes);
    setProblem(QStringLiteral("budget '%1': expected a size such as 755 MiB or 2.8GiB").arg(text));
    allow(store(), apply_, false);
  });
  connect(budgetText_, &QLineEdit::editingFinished, this, [this] {
    budgetText_->setModified(false);
    showChoice();
  });
  connect(budgetText_, &QLineEdit::returnPressed, this, &RecomputeView::apply);
  prediction_->setWordWrap(true);
  auto* budget = new QHBoxLayout;
  budget->setSpacing(m.padding);
  auto* name = new QLabel(QStringLiteral("Budget"));
  name->setProperty("role", "muted");
  budget->addWidget(name);
  budget->addWidget(slider_, 1);
  budget->addWidget(budgetText_);
  auto* plan = new QHBoxLayout;
  plan->setSpacing(qRound(0.5 * m.unit));
  auto* planName = new QLabel(QStringLiteral("Plan"));
  planName->setProperty("role", "muted");
  plan->addWidget(planName);
  plan->addWidget(plan_, 1);
  for (QPushButton* button : {copy_, reset_, apply_}) plan->addWidget(button);
  rows->addLayout(budget);
  rows->addWidget(prediction_);
  rows->addLayout(plan);
  rows->addWidget(bar_);
  rows->addWidget(proof_);
  rows->addWidget(kept_);
  connect(slider_, &QSlider::valueChanged, this, [this](int value) {
    const auto& report = store().findings().recompute();
    const int point = report ? report->curve_size() - 1 - value : -1;
    if (!filling_ && point >= 0 && point < report->curve_size())
      chooseBudget(point == 0 ? 0 : report->curve(point).peak_bytes());
  });
  connect(plan_, &QLineEdit::textChanged, this, [this] {
    if (!filling_) choiceChanged();
  });
  connect(plan_, &QLineEdit::returnPressed, this, &RecomputeView::apply);
  connect(apply_, &QPushButton::clicked, this, &RecomputeView::apply);
  connect(reset_, &QPushButton::clicked, this, [this] {
    filling_ = true;
    plan_->setText(appliedPlan_);
    filling_ = false;
    chooseBudget(appliedBudget_);
  });
  connect(copy_, &QPushButton::clicked, this, [this] {
    const auto& report = store().findings().recompute();
    const bool chosen = budget_ > 0 && report && report->has_what_if();
    QApplication::clipboard()->setText(chosen ? QString::fromStdString(report->what_if().plan()) : plan_->text());
    emit wishes().status(
        chosen && !report->what_if().exact()
            ? QStringLiteral("Copied. The notation takes first occurrences of a pattern; the budget chose others")
            : QStringLiteral("Copied the plan"));
  });
  return panel;
}

QString RecomputeView::headerText() const {
  const auto& report = store().findings().recompute();
  if (!report) return {};
  return QStringLiteral("arena %1 of %2 · %3")
      .arg(format::bytes(report->present_arena_bytes()), format::bytes(report->plain_arena_bytes()), costBasis(*report));
}

QString RecomputeView::emptyText() const {
  if (store().readOnly())
    return QStringLiteral(
        "A recorded project.\nWhat may be computed again is judged by a running worker: open the model itself (Ctrl+O).");
  if (!store().plan())
    return QStringLiteral(
        "No plan yet.\nOpen a model (Ctrl+O) and build its training step: what may be computed again to save memory appears "
        "here.");
  return {};
}

QString RecomputeView::tableText() const {
  if (store().findings().recompute())
    return QStringLiteral("Nothing may be computed again: what the backward phase reads is small, or costly to make.");
  const QString& problem = store().findings().recomputeAnswer().problem;
  if (!problem.isEmpty())
    return QStringLiteral("Not judged: %1\n“Judge again” above asks the worker once more.").arg(format::visible(problem));
  if (store().workerState() == WorkerState::kDead)
    return QStringLiteral("The worker is gone, and nothing was judged before.\nRestart it from the status bar.");
  return QStringLiteral("Judging what may be computed again …");
}

QString RecomputeView::option(const char* name) const {
  for (const auto& o : store().options())
    if (o.name() == name) return QString::fromStdString(o.value());
  return {};
}

void RecomputeView::takeOptions() {
  const QString plan = option("recompute.plan");
  const qint64 budget = format::bytesOf(option("recompute.budget")).value_or(0);
  const bool had = !store().options().empty();
  if (!had || plan != appliedPlan_ || budget != appliedBudget_) {
    appliedPlan_ = plan;
    appliedBudget_ = budget;
    filling_ = true;
    plan_->setText(plan);
    filling_ = false;
    budget_ = budget;
  }
  showChoice();
}

void RecomputeView::takeReport() {
  const auto& report = store().findings().recompute();
  const auto& answer = store().findings().recomputeAnswer();
  filling_ = true;
  model_->setReadOnly(store().readOnly());
  model_->setReport(report);
  plot_->setReport(report);
  table_->setEmptyText(tableText());
  const int points = report ? report->curve_size() : 0;
  slider_->setRange(0, std::max(0, points - 1));
  allow(store(), slider_, points > 1 && !store().readOnly());
  QStringList reasons;
  std::int64_t bytes = 0;
  for (int i = 0; report && i < report->refused_size(); ++i) {
    const auto& r = report->refused(i);
    if (r.bytes() > 0 && r.bytes() < std::int64_t{1} << 50) bytes += r.bytes();
    if (i < 12) reasons << QStringLiteral("%1: %2").arg(format::bytes(r.bytes()), format::visible(r.reason()));
  }
  say(kept_,
      reasons.isEmpty() ? QString()
                        : QStringLiteral("%1 more values (%2) have to be kept; the reasons are in the tooltip")
                              .arg(format::count(report->refused_size()), format::bytes(bytes)),
      QStringLiteral("faint"));
  kept_->setVisible(!kept_->text().isEmpty() &&
                    height() > 26 * Metrics::current().unit);  // the patterns need the place more
  kept_->setToolTip(QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(reasons.join('\n').toHtmlEscaped()));
  filling_ = false;
  // An answer about another choice than the one that stands here now is followed by the one about this.
  const bool about = answer.whatIf && answer.plan == plan_->text() && answer.budget == budget_;
  setProblem(about && report ? answer.problem : QString());
  if (report && !about && !isApplied() && !askLater_.isActive()) askLater_.start(kAskAfterMs);
  showChoice();
  emit emptyChanged();
  emit headerChanged();
}

void RecomputeView::setProblem(const QString& problem) {
  problem_ = problem;
  followStudy();
}

void RecomputeView::followStudy() {
  bar_->follow(store().plan() && !store().readOnly() && store().workerState() != WorkerState::kDead, problem_);
  allow(store(), bar_->button(), bar_->button()->isEnabled());
}

bool RecomputeView::isApplied() const { return plan_->text() == appliedPlan_ && budget_ == appliedBudget_; }

void RecomputeView::chooseBudget(qint64 bytes) {
  budget_ = bytes;
  choiceChanged();
}

void RecomputeView::choiceChanged() {
  setProblem({});
  showChoice();
  askLater_.start(kAskAfterMs);
}

void RecomputeView::showChoice() {
  const auto& report = store().findings().recompute();
  filling_ = true;
  // What the budget chose belongs to the plan that runs, and is not known of another choice.
  model_->setChosen(planEntries(plan_->text()), appliedBudget_ > 0 && isApplied());
  if (report && report->curve_size() > 0) {
    int point = 0;  // the first that is low enough
    while (budget_ > 0 && point + 1 < report->curve_size() && report->curve(point).peak_bytes() > budget_) ++point;
    slider_->setValue(report->curve_size() - 1 - point);
  }
  filling_ = false;
  if (!budgetText_->hasFocus() || !budgetText_->isModified())
    budgetText_->setText(budget_ > 0 ? format::bytes(budget_) : QString());
  budgetText_->setToolTip(
      budget_ > 0 ? format::bytesExact(budget_)
                  : QStringLiteral("No budget: only the plan below runs again. A size such as 755 MiB sets one"));
  const bool writable = !store().readOnly() && !store().options().empty();
  plan_->setReadOnly(!writable);
  allow(store(), apply_, writable && !isApplied() && problem_.isEmpty());
  allow(store(), reset_, writable && !isApplied());
  copy_->setEnabled(!plan_->text().isEmpty() || budget_ > 0);
  showPrediction();
}

void RecomputeView::showPrediction() {
  const auto& report = store().findings().recompute();
  const auto& answer = store().findings().recomputeAnswer();
  const bool known = report && report->has_what_if() && answer.problem.isEmpty() && answer.whatIf &&
                     answer.plan == plan_->text() && answer.budget == budget_;
  std::optional<snapshot::RecomputePoint> point;
  if (known) {
    point = report->what_if();
  } else if (report && plan_->text().trimmed().isEmpty() && report->curve_size() > 0) {
    // A budget alone stands in the curve.
    for (const auto& p : report->curve())
      if (!point || point->peak_bytes() > budget_) point = p;
    if (budget_ == 0) point = report->curve(0);
  }
  plot_->setChoice(isApplied() ? std::nullopt : point);
  QString text;
  if (!report || isApplied()) {
    text = !report          ? QString()
           : missesBudget() ? QStringLiteral("Applied. The budget of %1 cannot be reached: %2 is the least with recompute")
                                  .arg(format::bytes(appliedBudget_), format::bytes(leastPeak()))
                            : QStringLiteral("Applied: %1")
                                  .arg(plan_->text().trimmed().isEmpty() && budget_ == 0
                                           ? QStringLiteral("nothing runs again")
                                           : QStringLiteral("arena %1, peak of values %2")
                                                 .arg(format::bytes(report->present_arena_bytes()),
                                                      format::bytes(report->present_peak_bytes())));
  } else if (!point) {
    text = problem_.isEmpty() ? QStringLiteral("Working out what this gives …") : QString();
  } else {
    text =
        QStringLiteral("Arena %1 → %2 (%3), peak of values %4 → %5, step %6 → %7 (%8; %9)")
            .arg(format::bytes(report->plain_arena_bytes()), format::bytes(point->arena_bytes()),
                 format::change(static_cast<double>(report->plain_arena_bytes()), static_cast<double>(point->arena_bytes())),
                 format::bytes(report->plain_peak_bytes()), format::bytes(point->peak_bytes()),
                 format::time(whole(report->plain_step_ns())), format::time(whole(point->step_ns())),
                 format::change(report->plain_step_ns(), point->step_ns()), costBasis(*report));
    if (report->present_peak_bytes() != report->plain_peak_bytes())
      text += QStringLiteral("; the plan that runs has an arena of %1, a peak of %2")
                  .arg(format::bytes(report->present_arena_bytes()), format::bytes(report->present_peak_bytes()));
    if (budget_ > 0 && point->peak_bytes() > budget_)
      text += QStringLiteral(". The budget cannot be reached: %1 is the least with recompute")
                  .arg(format::bytes(point->peak_bytes()));
  }
  const bool missed = report && (isApplied() ? missesBudget() : budget_ > 0 && point && point->peak_bytes() > budget_);
  say(prediction_, text, missed ? QStringLiteral("warn") : QString());
  fitHeight();
  prediction_->setToolTip(
      QStringLiteral("Planned arena, workspaces included, peak of live activations in it and time of a step "
                     "with nothing recomputed, and with the choice: %1")
          .arg(report ? format::visible(report->basis()) : QString()));
}

// The end of the curve is what a budget can do at most; what the report says of the present plan is judged anew after it.
std::int64_t RecomputeView::leastPeak() const {
  const auto& report = store().findings().recompute();
  return report && report->curve_size() > 0 ? report->curve(report->curve_size() - 1).peak_bytes() : 0;
}

bool RecomputeView::missesBudget() const { return isApplied() && appliedBudget_ > 0 && leastPeak() > appliedBudget_; }

void RecomputeView::ask() {
  if (store().plan() && !store().readOnly() && !scriptDrives(store()) && !isApplied())
    emit wishes().recompute(true, plan_->text(), budget_);
}

void RecomputeView::askAll() {
  if (!stale_ || !isVisible() || !store().plan() || store().readOnly() || scriptDrives(store())) return;
  stale_ = false;
  if (isApplied())
    emit wishes().recompute(false, {}, 0);
  else
    ask();
}

void RecomputeView::apply() {
  if (!apply_->isEnabled()) return;
  // Two wishes of one turn of the event loop are one change.
  emit wishes().setOption(QStringLiteral("recompute.plan"), plan_->text().trimmed());
  emit wishes().setOption(QStringLiteral("recompute.budget"), QString::number(budget_));
}

void RecomputeView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  if (stale_) refreshLater_.start(0);
}

void RecomputeView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) {
    plot_->colour();
    plot_->replot(QCustomPlot::rpQueuedReplot);
    colourBoxes();
  }
}

// The outline of a check box is a darker Window colour, which a dark theme cannot show.
void RecomputeView::colourBoxes() {
  QPalette palette = table_->palette();
  palette.setColor(QPalette::Window, Tokens::current().edge.lighter(140));
  table_->setPalette(palette);
}

void RecomputeView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  split_->setOrientation(width() > height() ? Qt::Horizontal : Qt::Vertical);
  // Beside the set-up there is room for one of the two.
  const int both = std::max(scroll_->widget()->minimumSizeHint().width(), scroll_->minimumWidth()) + plot_->minimumWidth();
  plot_->setVisible(split_->orientation() == Qt::Vertical || width() >= both);
  kept_->setVisible(!kept_->text().isEmpty() && height() > 26 * Metrics::current().unit);
  fitHeight();
}

// Lines that wrap need what their width makes of them, which a scroll area does not ask for.
void RecomputeView::fitHeight() {
  QWidget* left = scroll_->widget();
  const int needed = left->layout()->minimumHeightForWidth(scroll_->viewport()->width());
  if (needed >= 0 && left->minimumHeight() != needed) left->setMinimumHeight(needed);
}

}  // namespace stepscope
