// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/compare_view.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/comparison_cells.h"
#include "views/common/format.h"
#include "views/common/project_reads.h"
#include "views/common/reading_veil.h"
#include "views/common/tokens.h"
#include "views/compare/compare_rows.h"
#include "views/compare/numbers_page.h"
#include "views/compare/settings_page.h"
#include "views/compare/times_page.h"
#include "views/compare/tolerance_bar.h"

namespace stepscope {
namespace {

constexpr int kRun = Qt::UserRole, kProject = Qt::UserRole + 1;
constexpr int kNarrowPair = 48;  // units

// `titles`: of the runs, from the first on.
void addRuns(QComboBox& list, const std::vector<RunEntry>& runs, const QString* titles, const QString& project) {
  for (std::size_t i = runs.size(); i-- > 0;) {  // the newest first
    QString title = titles[i];
    if (!project.isEmpty()) title = format::visible(project.section('/', -1)) + QStringLiteral(": ") + title;
    list.addItem(title, QVariant::fromValue<qint64>(runs[i].id));
    list.setItemData(list.count() - 1, project, kProject);
    list.setItemData(list.count() - 1, title, Qt::ToolTipRole);
  }
}

int placeOf(const QComboBox& list, std::int64_t run, const QString& project) {
  for (int i = 0; i < list.count(); ++i) {
    if (list.itemData(i, kRun).toLongLong() == run && list.itemData(i, kProject).toString() == project) return i;
  }
  return -1;
}

const RunEntry* runOf(const std::vector<RunEntry>& runs, std::int64_t id) {
  const auto found = std::find_if(runs.begin(), runs.end(), [id](const RunEntry& r) { return r.id == id; });
  return found == runs.end() ? nullptr : &*found;
}

}  // namespace

CompareView::CompareView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("compare"), QStringLiteral("Compare"), parent),
      controls_(new QWidget(this)),
      logarithmic_(new QToolButton),
      other_(new QPushButton(QStringLiteral("Other project…"))),
      cancel_(new QPushButton(QStringLiteral("Cancel"))),
      a_(new QComboBox),
      b_(new QComboBox),
      letterA_(new QLabel),
      letterB_(new QLabel),
      swap_(new QToolButton),
      pair_(new QGridLayout),
      note_(new QLabel),
      pages_(new ComparePages) {
  const Metrics m = Metrics::current();
  auto* line = new QHBoxLayout(controls_);
  line->setContentsMargins(0, 0, 0, 0);
  logarithmic_->setCheckable(true);
  logarithmic_->setText(QStringLiteral("Log"));
  line->addWidget(logarithmic_);
  line->addWidget(cancel_);
  line->addWidget(other_);
  controls_->hide();
  logarithmic_->setToolTip(QStringLiteral("Logarithmic axis of the losses"));
  other_->setToolTip(QStringLiteral("Takes run B from another project file"));
  other_->setObjectName(QStringLiteral("compare_other"));
  cancel_->setObjectName(QStringLiteral("compare_cancel"));
  cancel_->setToolTip(QStringLiteral("Ends reading the two runs; what was compared before stays  (Esc)"));

  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  pair_->setContentsMargins(m.padding, qRound(0.5 * m.unit), m.padding, qRound(0.5 * m.unit));
  pair_->setSpacing(qRound(0.5 * m.unit));
  swap_->setText(QStringLiteral("⇄"));
  swap_->setToolTip(QStringLiteral("Swaps A and B"));
  swap_->setAccessibleName(QStringLiteral("Swap A and B"));
  swap_->setObjectName(QStringLiteral("compare_swap"));
  for (auto [list, letter] : {std::pair(a_, QStringLiteral("A")), std::pair(b_, QStringLiteral("B"))}) {
    QLabel* label = list == a_ ? letterA_ : letterB_;
    label->setText(letter);
    QFont strong = label->font();
    strong.setWeight(QFont::DemiBold);
    label->setFont(strong);
    list->setAccessibleName(QStringLiteral("Run %1").arg(letter));
    list->setToolTip(QStringLiteral("Run %1: any recorded run of the project, the newest first").arg(letter));
    list->setObjectName(QStringLiteral("compare_") + letter.toLower());
    list->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    list->setMinimumContentsLength(8);
    list->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(list, &QComboBox::activated, this, &CompareView::pick);
  }
  placePair(false);
  column->addLayout(pair_);
  note_->setTextFormat(Qt::PlainText);
  note_->setWordWrap(true);
  note_->setProperty("role", "warn");
  note_->setObjectName(QStringLiteral("compare_note"));
  note_->setContentsMargins(m.padding, 0, m.padding, qRound(0.4 * m.unit));
  note_->hide();
  auto* compared = new QWidget;  // what is said and shown of the pair
  auto* body = new QVBoxLayout(compared);
  body->setContentsMargins(0, 0, 0, 0);
  body->setSpacing(0);
  body->addWidget(note_);
  body->addWidget(new ToleranceBar(context));
  auto* runs = new CompareRunsPage(context);
  pages_->add(runs);
  pages_->add(new CompareSettingsPage(context));
  pages_->add(new CompareNumbersPage(context));
  for (const Times table : {Times::kOperators, Times::kStepPhases, Times::kBuild, Times::kMemory})
    pages_->add(new CompareTimesPage(context, table));
  body->addWidget(pages_, 1);
  column->addWidget(compared, 1);

  connect(swap_, &QToolButton::clicked, this, [this] {
    CompareRequest request = store().project().compareRequest();
    std::swap(request.a, request.b);
    if (request.complete()) ask(request);
  });
  connect(cancel_, &QPushButton::clicked, this, [this] { emit wishes().command(QStringLiteral("cancel_reads")); });
  const ProjectReads& reads = ProjectReads::of(store().project());
  new ReadingVeil(compared, reads, ProjectReads::What::kComparison, [this] { return readingText(); });
  connect(&reads, &ProjectReads::changed, this, &CompareView::followReading);
  followReading();
  connect(other_, &QPushButton::clicked, this, [this] { emit wishes().openOtherProject(); });
  connect(logarithmic_, &QToolButton::toggled, runs, &CompareRunsPage::setLogarithmic);
  connect(pages_, &ComparePages::frontChanged, this, [this, runs] {
    logarithmic_->setVisible(pages_->front() == runs);
    emit headerChanged();
  });
  connect(&store().project(), &ProjectFacts::runsChanged, this, &CompareView::fillRuns);
  connect(&store().project(), &ProjectFacts::projectChanged, this, &CompareView::fillRuns);
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &CompareView::showResult);
  connect(&RunTimes::of(store().project()), &RunTimes::changed, this, &CompareView::showResult);
  fillRuns();
}

QString CompareView::headerText() const {
  const auto& facts = store().project();
  if (facts.comparing()) return QStringLiteral("reading …");
  if (!facts.runComparison()) return {};
  const RunComparison& c = *facts.runComparison();
  if (!comparison::oneRunText(facts).isEmpty()) return QStringLiteral("one run");
  const QString pair = c.both == 0   ? QStringLiteral("no step in both")
                       : c.first     ? QStringLiteral("part at step %1").arg(format::count(c.first->step))
                       : c.both == 1 ? QStringLiteral("1 step agrees")
                                     : QStringLiteral("%1 steps agree").arg(format::count(c.both));
  const QString page = pages_->front()->emptyText().isEmpty() ? pages_->front()->headerText() : QString();
  return page.isEmpty() ? pair : pair + QStringLiteral(" · ") + page;
}

QString CompareView::emptyText() const {
  const auto& facts = store().project();
  return facts.runs().empty() || facts.runs().size() + facts.otherRuns().size() < 2 ? comparison::noneText(facts)
                                                                                    : QString();
}

QString CompareView::readingText() const {
  const auto& facts = store().project();
  if (!facts.runComparison()) return {};
  const CompareRequest &wanted = facts.compareRequest(), &shown = facts.runComparison()->request;
  const QString reading = QStringLiteral("Reading run %1 and run %2").arg(wanted.a).arg(wanted.b);
  if (wanted.a == shown.a && wanted.b == shown.b && wanted.otherProject == shown.otherProject)
    return reading + QStringLiteral(" again …");
  return reading + QStringLiteral(" … below are run %1 and run %2").arg(shown.a).arg(shown.b);
}

void CompareView::followReading() {
  cancel_->setVisible(ProjectReads::of(store().project()).shown(ProjectReads::What::kComparison));
  emit headerChanged();
}

void CompareView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  fillRuns();
}

// In one line, or B below A: what runs differ in is told in numbers, which are to be read whole.
void CompareView::placePair(bool stacked) {
  pair_->addWidget(letterA_, 0, 0);
  pair_->addWidget(a_, 0, 1);
  pair_->addWidget(swap_, 0, 2);
  pair_->addWidget(letterB_, stacked ? 1 : 0, stacked ? 0 : 3);
  pair_->addWidget(b_, stacked ? 1 : 0, stacked ? 1 : 4);
  pair_->setColumnStretch(1, 1);
  pair_->setColumnStretch(4, stacked ? 0 : 1);
}

void CompareView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  placePair(width() < kNarrowPair * Metrics::current().unit);
}

void CompareView::fillRuns() {
  const ProjectFacts& facts = store().project();
  emit emptyChanged();
  for (QComboBox* list : {a_, b_}) list->clear();
  // What tells one from another, those of the other project among them.
  std::vector<RunEntry> all = facts.runs();
  all.insert(all.end(), facts.otherRuns().begin(), facts.otherRuns().end());
  const std::vector<QString> titles = runTitles(all);
  for (QComboBox* list : {a_, b_}) addRuns(*list, facts.runs(), titles.data(), {});
  addRuns(*b_, facts.otherRuns(), titles.data() + facts.runs().size(), facts.otherProject());
  showResult();
  if (!isVisible() || emptyText() != QString()) return;

  CompareRequest request = facts.compareRequest();
  const bool otherCame = !facts.otherRuns().empty() && facts.otherProject() != proposed_.otherProject &&
                         request.otherProject != facts.otherProject();
  if (otherCame) {  // the user has just fetched it to be compared with
    request.otherProject = proposed_.otherProject = facts.otherProject();
    request.b = facts.otherRuns().back().id;
    if (!runOf(facts.runs(), request.a)) request.a = facts.runs().back().id;
    return ask(request);
  }
  if ((!request.complete() || request == proposed_) && request.otherProject.isEmpty() && facts.runs().size() >= 2) {
    request.a = facts.runs()[facts.runs().size() - 2].id;
    request.b = facts.runs().back().id;
    if (request != facts.compareRequest()) {
      proposed_ = request;
      return ask(request);
    }
  }
  // A run that went on since is read again.
  if (!request.complete() || facts.comparing() || !facts.runComparison()) return;
  const RunComparison& c = *facts.runComparison();
  const auto moved = [](const std::vector<RunEntry>& runs, const RunEntry& seen) {
    const RunEntry* now = runOf(runs, seen.id);
    return now && (now->steps != seen.steps || now->status != seen.status);
  };
  if (moved(facts.runs(), c.a.run) || (request.otherProject.isEmpty() && moved(facts.runs(), c.b.run))) ask(request);
}

void CompareView::pick() {
  CompareRequest request = store().project().compareRequest();
  request.a = a_->currentData(kRun).toLongLong();
  request.b = b_->currentData(kRun).toLongLong();
  request.otherProject = b_->currentData(kProject).toString();
  ask(request);
}

void CompareView::ask(const CompareRequest& request) { emit wishes().compareRuns(request); }

void CompareView::showResult() {
  const ProjectFacts& facts = store().project();
  const CompareRequest& request = facts.compareRequest();
  a_->setCurrentIndex(placeOf(*a_, request.a, {}));
  b_->setCurrentIndex(placeOf(*b_, request.b, request.otherProject));
  swap_->setEnabled(request.complete() && request.otherProject.isEmpty());
  const auto& result = facts.runComparison();
  const PairTimes times = result ? RunTimes::of(store().project()).pair(result->request) : PairTimes();
  QStringList notes;
  if (result) notes << comparison::timesNote(times);
  for (const QString& line : times.notes.split('\n')) notes << format::visible(line);
  notes.removeAll(QString());
  note_->setText(notes.join('\n'));
  note_->setVisible(!note_->text().isEmpty());
  emit headerChanged();
  emit emptyChanged();
}

}  // namespace stepscope
