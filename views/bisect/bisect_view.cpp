// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/bisect/bisect_view.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <map>
#include <string_view>

#include "views/common/details.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kMostNodes = 40;

QString errorOf(double error, const std::string& what) {
  return what.empty() ? format::number(error, 2)
                      : QStringLiteral("%1 of the %2").arg(format::number(error, 2), format::visible(what));
}

QString valueOf(std::string_view value) {
  return value.empty() ? QStringLiteral("empty") : format::visible(std::string(value));
}

}  // namespace

BisectView::BisectView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("bisect"), QStringLiteral("Cause of a difference"), parent),
      bar_(new StudyBar("bisect", store().findings().bisect(), wishes(),
                        {QStringLiteral("Find the cause"),
                         QStringLiteral("Compares the present step with one in float32 where every optimisation is off and "
                                        "every kernel is the reference. A build and a step for each set of options that is "
                                        "tried; the run stays where it is, Esc cancels"),
                         QStringLiteral("Ends it; what was found before stays (Esc)"),
                         QStringLiteral("Sets of options are being tried"), QStringLiteral("Running the reference …")})),
      page_(new Details) {
  const Metrics m = Metrics::current();
  bar_->button()->setObjectName(QStringLiteral("bisect_start"));
  page_->setObjectName(QStringLiteral("bisect_finding"));
  page_->setAccessibleName(QStringLiteral("What makes numbers differ"));
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  auto* top = new QVBoxLayout;
  top->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  top->setSpacing(qRound(0.35 * m.unit));
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(bar_->button());
  buttons->addStretch(1);
  top->addLayout(buttons);
  top->addWidget(bar_);
  all->addLayout(top);
  all->addWidget(page_, 1);
  connect(bar_, &StudyBar::startWanted, this, [this] { emit wishes().bisect(); });
  connect(page_, &Details::selected, this, [this](const Selection& target) { selection().select(target); });
  connect(&store().findings().bisect(), &Study::changed, this, &BisectView::follow);
  connect(&store().findings(), &Findings::bisectedOptionsChanged, this, &BisectView::follow);
  connect(&store(), &SnapshotStore::planChanged, this, &BisectView::follow);
  connect(&store(), &SnapshotStore::optionsChanged, this, &BisectView::follow);
  connect(&store(), &SnapshotStore::workerChanged, this, &BisectView::follow);
  follow();
}

QString BisectView::emptyText() const {
  if (store().readOnly())
    return QStringLiteral("A recorded project.\nA running worker looks for causes: open the model itself (Ctrl+O).");
  if (!store().plan())
    return QStringLiteral(
        "No plan yet.\nOpen a model (Ctrl+O) and build its training step: which options change its numbers is found here.");
  return {};
}

void BisectView::follow() {
  const auto& study = store().findings().bisect();
  const bool alive = store().plan() && !store().readOnly() && store().workerState() != WorkerState::kDead;
  bar_->follow(alive);
  allow(store(), bar_->button(), bar_->button()->isEnabled());
  if (study.running()) return;
  if (study.report()) return showFinding(*study.report());
  page_->begin();
  page_->paragraph(Details::quiet(QStringLiteral("Nothing looked for yet.")));
  page_->paragraph(Details::quiet(
      QStringLiteral("“Find the cause” names the smallest set of options that makes the present step compute other numbers "
                     "than the reference, and the first node where they part. Where an option was proven to change numbers, "
                     "the same button stands beside the proof.")));
  page_->end();
}

QStringList BisectView::changedSince() const {
  std::map<std::string_view, std::string_view> now;
  for (const auto& option : store().options()) now[option.name()] = option.value();
  QStringList changes;
  for (const auto& then : store().findings().bisectedOptions())
    if (const auto it = now.find(then.name()); it != now.end() && it->second != then.value())
      changes << QStringLiteral("%1 was %2, is %3 now")
                     .arg(format::visible(then.name()), valueOf(then.value()), valueOf(it->second));
  return changes;
}

void BisectView::showFinding(const snapshot::BisectFinding& f) {
  using D = Details;
  page_->begin();
  // The finding is of the options that stood then: it says so as soon as others stand.
  const QStringList changes = changedSince();
  const bool holds = changes.isEmpty();
  page_->title((f.differs() ? holds ? QStringLiteral("Step %1 computes other numbers than the reference")
                                    : QStringLiteral("Step %1 computed other numbers than the reference")
                : holds ? QStringLiteral("Step %1 computes what the reference computes")
                            : QStringLiteral("Step %1 computed what the reference computes"))
                   .arg(f.step()));
  if (!holds)
    page_->row(QStringLiteral("Changed since"),
               D::text(changes.join(QStringLiteral("; "))) + ' ' +
                   D::quiet(QStringLiteral("“Find the cause” looks at the step as it is now")));
  page_->row(QStringLiteral("Error"),
             D::text(errorOf(f.error(), f.worst())) + ' ' +
                 D::quiet(QStringLiteral("relative L2; up to %1 is rounding").arg(format::number(f.tolerance(), 2))));
  page_->row(
      QStringLiteral("Compared"),
      D::text(QStringLiteral("%1 options differ from the reference, %2 steps run").arg(f.candidates()).arg(f.tried())));
  if (f.differs()) {
    page_->heading(holds ? QStringLiteral("The smallest set of options that shows it")
                         : QStringLiteral("The smallest set of options that showed it"));
    for (const auto& option : f.options())
      page_->row(format::visible(option.name()),
                 D::strong(format::visible(option.value())) + ' ' +
                     D::quiet(QStringLiteral("reference: %1").arg(format::visible(option.reference()))));
    page_->row(QStringLiteral("Alone"), D::text(errorOf(f.options_error(), f.options_worst())));
  }
  if (!f.value().empty()) {
    page_->heading(QStringLiteral("Where it begins"));
    int value = -1;
    if (const GraphPtr& graph = store().graph())
      for (const auto& v : graph->graph().values())
        if (v.name() == f.value()) value = v.id();
    const QString name = format::visible(f.value());
    page_->row(QStringLiteral("Value"), value >= 0 ? D::link(Selection::ofValue(value), name) : D::text(name));
    page_->row(QStringLiteral("Made by"), D::text(format::visible(f.label())));
    if (!f.module().empty()) page_->row(QStringLiteral("Module"), D::text(format::visible(f.module())));
    if (!f.source().empty()) page_->row(QStringLiteral("Source"), D::mono(format::visible(f.source())));
    page_->row(QStringLiteral("Error"), D::text(format::number(f.value_error(), 2)));
  }
  if (f.nodes_size() > 0) {
    page_->heading(f.nodes_size() == 1 ? QStringLiteral("The node that shows it")
                                       : QStringLiteral("The %1 nodes that show it").arg(f.nodes_size()));
    for (int i = 0; i < std::min(f.nodes_size(), kMostNodes); ++i) page_->paragraph(D::mono(format::visible(f.nodes(i))));
    if (f.nodes_size() > kMostNodes)
      page_->paragraph(D::quiet(QStringLiteral("and %1 more").arg(f.nodes_size() - kMostNodes)));
    if (f.shown()) page_->row(QStringLiteral("Alone"), D::text(format::number(f.shown_error(), 2)));
  }
  if (!f.file().empty()) {
    page_->row(QStringLiteral("Saved as"), D::mono(format::visible(f.file())));
    page_->row(QStringLiteral("Its data"), D::mono(format::visible(f.data())));
  }
  if (!f.note().empty()) page_->paragraph(D::text(format::visible(f.note())));
  page_->end();
}

}  // namespace stepscope
