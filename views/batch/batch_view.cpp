// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/batch_view.h"

#include <QHBoxLayout>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "views/batch/batch_inputs.h"
#include "views/common/chosen_step.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr std::size_t kMostSteps = 500;  // to choose from
}

BatchView::BatchView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("batch"), QStringLiteral("Batch"),
          {{QStringLiteral("Input"), QStringLiteral("Name of the graph input; click shows its elements"), false, 9},
           {QStringLiteral("Shape, type"), QStringLiteral("Extents of this batch"), false, 13},
           {QStringLiteral("Meaning"), QStringLiteral("How the input is used, as far as the graph tells"), false, 12},
           {QStringLiteral("Min"), QStringLiteral("Smallest finite element"), true, 5},
           {QStringLiteral("Max"), QStringLiteral("Largest finite element"), true, 5},
           {QStringLiteral("Zeros"),
            QStringLiteral("Share of elements that are zero; for a mask: of masked places; for token ids: often padding"),
            true, 5},
           {QStringLiteral("Negative"),
            QStringLiteral("Share of negative elements; for labels: of places that the loss leaves out"), true, 5},
           {QStringLiteral("NaN, Inf"), QStringLiteral("Elements that are not finite"), true, 5}},
          parent),
      source_(store()),
      steps_(new QComboBox),
      splitter_(new QSplitter(Qt::Horizontal)),
      tabs_(new QTabBar),
      pages_(new QStackedWidget),
      density_(new DensityPage(context, source_)),
      contents_(new ContentsPage(context, source_)),
      worst_(new WorstPage(context, source_, [this](int input) { return contents_->contents(input); })) {
  makePages();
  connect(&store(), &SnapshotStore::graphChanged, this, [this] {
    worst_->forget();
    pick(recordedBatches(store(), kMostSteps));
    another();
  });
  connect(&ChosenStep::of(store()), &ChosenStep::changed, this, [this] {
    if (!pick(recordedBatches(store(), kMostSteps))) return refillLater();
    another();
    emit headerChanged();
  });
  connect(&store(), &SnapshotStore::stepsChanged, this, &BatchView::refillLater);
  connect(&store(), &SnapshotStore::phasesChanged, this, &BatchView::refillLater);
  connect(&store(), &SnapshotStore::positionChanged, this, [this] {
    emit headerChanged();
    if (!source_.live()) return;
    if (store().presentStep() != fetchedStep_) {
      another();
    } else if (isVisible() && tabs_->currentIndex() == kWorst) {
      worst_->ask();
    }
  });
  connect(&store(), &SnapshotStore::tensorArrived, this, [this](int value) {
    const std::vector<int> inputs = batch::inputs(store());
    if (std::find(inputs.begin(), inputs.end(), value) == inputs.end()) return;
    contents_->take(value);
    refillLater();
  });
  connect(&store().findings(), &Findings::rowLossesChanged, this, [this] { contents_->setWorst(worst_->worstSample()); });
  connect(&selection(), &SelectionModel::selectionChanged, this, [this] {
    if (isVisible() && tabs_->currentIndex() == kContents) showPage(kContents);
  });
}

void BatchView::makePages() {
  const Metrics m = Metrics::current();
  steps_->setObjectName(QStringLiteral("batch_step"));
  steps_->setAccessibleName(QStringLiteral("Step whose batch is shown"));
  steps_->setToolTip(
      QStringLiteral("Steps that recorded their batch; how often they do is a matter of the option record.batch. The other "
                     "views follow to the step"));
  steps_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  auto* line = new QHBoxLayout;
  line->setContentsMargins(qRound(0.6 * m.unit), qRound(0.4 * m.unit), qRound(0.6 * m.unit), 0);
  line->addWidget(steps_);
  line->addStretch(1);
  body()->insertLayout(0, line);
  connect(steps_, &QComboBox::activated, this, [this](int i) { emit wishes().showStep(steps_->itemData(i).toLongLong()); });
  for (const QString& title : {QStringLiteral("Density"), QStringLiteral("Contents"), QStringLiteral("Worst row")})
    tabs_->addTab(title);
  tabs_->setObjectName(QStringLiteral("quiet_tabs"));
  tabs_->setAccessibleName(QStringLiteral("What is shown of the batch"));
  tabs_->setDrawBase(false);
  tabs_->setExpanding(false);
  tabs_->setUsesScrollButtons(false);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(density_);
  pages_->addWidget(scroll);
  pages_->addWidget(contents_);
  pages_->addWidget(worst_);
  auto* side = new QWidget;
  auto* sideLayout = new QVBoxLayout(side);
  sideLayout->setContentsMargins(0, 0, 0, 0);
  sideLayout->setSpacing(0);
  sideLayout->addWidget(tabs_, 0, Qt::AlignLeft);
  sideLayout->addWidget(pages_, 1);
  splitter_->setHandleWidth(1);
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(table());
  splitter_->addWidget(side);
  splitter_->setStretchFactor(0, 1);
  splitter_->setStretchFactor(1, 1);
  splitter_->setSizes({470, 530});  // shares
  body()->addWidget(splitter_, 1);
  connect(tabs_, &QTabBar::currentChanged, this, &BatchView::showPage);
  connect(worst_, &WorstPage::contentsWanted, this, [this](int sample, int place) {
    openPage(kContents);
    contents_->goTo(sample, place);
  });
}

QString BatchView::headerText() const {
  if (source_.recorded())
    return QStringLiteral("step %1: %2").arg(source_.step()).arg(format::visible(source_.recorded()->batch()));
  if (!source_.missing().isEmpty()) return ChosenStep::of(store()).title();
  if (store().steps().empty()) return {};
  // A step that goes on has the batch that is shown; which entry it is stands in its record, at its end.
  const snapshot::StepRecord& last = *store().steps().back();
  return source_.live() && store().position().in_step()
             ? QStringLiteral("step %1").arg(format::count(store().position().step()))
             : QStringLiteral("step %1: %2").arg(format::count(last.step()), format::visible(last.batch()));
}

QString BatchView::emptyText() const {
  return store().graph()
             ? QString()
             : QStringLiteral("No model is open.\nOpen one (Ctrl+O): the batch of the present step appears here.");
}

void BatchView::showEvent(QShowEvent* event) {
  TablePanel::showEvent(event);
  if (!fetched_) fetch();
}

void BatchView::resizeEvent(QResizeEvent* event) {
  TablePanel::resizeEvent(event);
  // Beside each other in a wide strip, one above the other in a column.
  splitter_->setOrientation(width() > 1.3 * height() ? Qt::Horizontal : Qt::Vertical);
}

void BatchView::another() {
  fetched_ = false;
  contents_->forget();
  contents_->setWorst(-1);
  refillLater();
  if (isVisible()) fetch();
}

bool BatchView::pick(const std::vector<StepPtr>& recorded) {
  const ChosenStep& chosen = ChosenStep::of(store());
  if (chosen.step() < 0) return source_.show(store().readOnly() && !recorded.empty() ? recorded.front() : nullptr);
  for (const StepPtr& step : recorded)
    if (step->step() == chosen.step()) return source_.show(step);
  if (chosen.record() && hasBatch(*chosen.record())) return source_.show(chosen.record());
  QString why = chosen.state() == ChosenStep::State::kShown
                    ? QStringLiteral("Step %1 did not record its batch: the option record.batch says how often steps do.")
                          .arg(format::count(chosen.step()))
                    : chosen.text().replace('\n', ' ');
  return source_.showWithout(chosen.record(), why);
}

void BatchView::fillSteps() {
  const std::vector<StepPtr> recorded = recordedBatches(store(), kMostSteps);
  const auto chosen = QVariant::fromValue<qint64>(ChosenStep::of(store()).step());
  steps_->clear();
  steps_->addItem(store().readOnly() ? QStringLiteral("Newest batch") : QStringLiteral("Present batch"),
                  QVariant::fromValue<qint64>(-1));
  for (const StepPtr& step : recorded)
    steps_->addItem(QStringLiteral("Step %1   %2").arg(step->step()).arg(format::visible(step->batch())),
                    QVariant::fromValue<qint64>(step->step()));
  if (steps_->findData(chosen) < 0) steps_->insertItem(1, QStringLiteral("Step %1").arg(chosen.toLongLong()), chosen);
  steps_->setCurrentIndex(steps_->findData(chosen));
  steps_->setVisible(steps_->count() > 1);
  // The newest one follows the run.
  if (pick(recorded)) {
    contents_->setWorst(worst_->worstSample());
    emit headerChanged();
  }
}

void BatchView::fetch() {
  if (store().graph() && !source_.live()) {
    contents_->setWorst(worst_->worstSample());
    showPage(tabs_->currentIndex());
  }
  if (!store().graph() || !source_.live()) return;
  fetched_ = true;
  fetchedStep_ = store().presentStep();
  for (const int id : batch::inputs(store())) {
    // Statistics are over the whole input; of the elements one is enough here.
    const auto rank = static_cast<std::size_t>(store().graph()->value(id)->dims_size());
    emit wishes().fetchTensor(id, std::vector<qint64>(rank, 0), std::vector<qint64>(rank, 1));
  }
  showPage(tabs_->currentIndex());
}

void BatchView::showPage(int page) {
  pages_->setCurrentIndex(page);
  if (page == kDensity) density_->refresh();
  if (page == kContents) {
    contents_->fetch();
    contents_->refresh();
  }
  if (page == kWorst) {
    worst_->ask();
    worst_->refresh();
  }
}

void BatchView::refill() {
  fillSteps();
  // A graph with symbolic extents does not tell those of the batch.
  const auto shapeOf = [this](int id) {
    const auto* kept = source_.kept(id);
    if (!kept) return names::shapeAndType(*store().graph()->value(id));
    snapshot::Value value = *store().graph()->value(id);
    value.clear_dims();
    for (const auto extent : kept->dims()) value.add_dims(std::to_string(extent));
    value.set_rank_known(true);
    return names::shapeAndType(value);
  };
  std::vector<TableRow> rows;
  for (const int id : batch::inputs(store())) {
    TableRow row;
    row.target = Selection::ofValue(id);
    const auto* info = batch::info(store(), id);
    row.cells = {names::value(*store().graph(), id),
                 shapeOf(id),
                 {info ? format::visible(info->role()) : QStringLiteral("set by the training"),
                  {},
                  info ? format::visible(info->reason()) : QString()}};
    if (const auto* s = source_.statistics(id)) {
      const auto share = [s](std::int64_t n) {
        TableCell cell(
            n == 0 ? QStringLiteral("0") : format::percent(static_cast<double>(n), static_cast<double>(s->count())),
            QVariant::fromValue<qint64>(n),
            QStringLiteral("%1 of %2 elements").arg(format::count(n), format::count(s->count())));
        if (s->count() > 0) cell.share = static_cast<double>(n) / static_cast<double>(s->count());
        return cell;
      };
      row.cells.push_back({format::number(s->min()), s->min(), format::numberExact(s->min())});
      row.cells.push_back({format::number(s->max()), s->max(), format::numberExact(s->max())});
      row.cells.push_back(share(s->zeros()));
      row.cells.push_back(share(s->negative()));
      TableCell bad(format::count(s->nan() + s->inf()), QVariant::fromValue<qint64>(s->nan() + s->inf()));
      bad.role = s->nan() + s->inf() > 0 ? QStringLiteral("error") : QStringLiteral("faint");
      row.cells.push_back(bad);
    }
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
  density_->refresh();
  contents_->refresh();
  worst_->refresh();
}

}  // namespace stepscope
