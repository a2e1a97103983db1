// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/tensors_view.h"

#include <QDragEnterEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QMimeData>
#include <QScrollArea>
#include <QSplitter>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/findings.h"
#include "views/common/icons.h"
#include "views/common/names.h"
#include "views/common/running.h"
#include "views/common/tokens.h"
#include "views/tensors/tensor_menu.h"

namespace stepscope {
namespace {

// The one local .npy file that is dragged; empty when it is anything else.
QString draggedArray(const QMimeData& data) {
  const QList<QUrl> urls = data.urls();
  if (urls.size() != 1 || !urls[0].isLocalFile()) return {};
  const QString path = urls[0].toLocalFile();
  return path.endsWith(QStringLiteral(".npy"), Qt::CaseInsensitive) ? path : QString();
}

// Whether the session stands where it does because of a number that is not finite: stopped by it, or led to it by an alert.
bool standsAtNumber(const SnapshotStore& store) {
  const auto& p = store.position();
  if (!p.in_step()) return false;
  if (p.breakpoint() == 0)
    return std::any_of(store.alerts().begin(), store.alerts().end(), [&p](const snapshot::Alert& alert) {
      return alert.step() == p.step() && alert.instruction() >= 0 && alert.instruction() == p.instruction() - 1;
    });
  return std::any_of(store.breakpoints().begin(), store.breakpoints().end(), [&p](const snapshot::Breakpoint& b) {
    const bool ofCount =
        b.predicate().find(" nan ") != std::string::npos || b.predicate().find(" inf ") != std::string::npos;
    return b.id() == p.breakpoint() && (b.nan() || b.new_inf() || ofCount);
  });
}

}  // namespace

TensorsView::TensorsView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("tensors"), QStringLiteral("Tensor"), parent),
      operands_(new QComboBox),
      more_(new QToolButton),
      facts_(new ValueFacts(store())),
      statistics_(new StatisticsPanel),
      elements_(new ElementsPanel(context)) {
  const Metrics m = Metrics::current();
  setAcceptDrops(true);
  operands_->setAccessibleName(QStringLiteral("Inputs and outputs of the selected instruction"));
  operands_->setToolTip(operands_->accessibleName());
  operands_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  operands_->setMinimumContentsLength(8);
  operands_->setMinimumWidth(3 * m.unit);  // beside the set-up
  more_->setIcon(icon(QStringLiteral("more")));
  more_->setObjectName(QStringLiteral("tensor_more"));
  more_->setToolTip(QStringLiteral("Watch, pin, compare, edit, load, save"));
  more_->setAccessibleName(QStringLiteral("Actions on this tensor"));

  auto* upper = new QWidget;
  auto* upperLayout = new QVBoxLayout(upper);
  upperLayout->setContentsMargins(0, 0, 0, 0);
  upperLayout->setSpacing(0);
  auto* top = new QHBoxLayout;
  top->setContentsMargins(m.padding, qRound(0.5 * m.unit), qRound(0.4 * m.unit), 0);
  top->addWidget(operands_, 1);
  top->addWidget(more_);
  upperLayout->addLayout(top);
  upperLayout->addWidget(facts_);
  upperLayout->addWidget(statistics_);
  upperLayout->addStretch(1);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(upper);
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->setHandleWidth(1);
  splitter->setChildrenCollapsible(false);
  splitter->addWidget(scroll);
  splitter->addWidget(elements_);
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  splitter->setSizes({560, 360});
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);

  connect(operands_, &QComboBox::activated, this, [this](int i) {
    Selection s = selection().selection();
    s.value = operands_->itemData(i).toInt();
    s.buffer = -1;
    selection().select(s);
  });
  connect(facts_, &Details::selected, this, [this](const Selection& s) { selection().select(s); });
  connect(facts_, &Details::commandClicked, this, [this](const QString& what) {
    if (what.startsWith(u"runpast:")) {
      emit wishes().runTo(what.mid(8).toInt() + 1);
    } else if (what == u"pin") {
      emit wishes().pin(value_, true);
    }
  });
  connect(statistics_, &StatisticsPanel::clampChanged, &elements_->heatMap(), &HeatMap::setRange);
  connect(statistics_, &StatisticsPanel::elementWanted, elements_, &ElementsPanel::goTo);
  connect(elements_, &ElementsPanel::sliceWanted, this, &TensorsView::fetch);
  connect(more_, &QToolButton::clicked, this, &TensorsView::openMenu);
  connect(&selection(), &SelectionModel::selectionChanged, this, &TensorsView::followSelection);
  connect(&store(), &SnapshotStore::graphChanged, this, [this] {
    value_ = -1;
    followSelection();
  });
  connect(&store(), &SnapshotStore::positionChanged, this, [this] {
    stale_ = true;
    elements_->comparison().contentsChanged();
    // What passes by in a run cannot be read: the values of where it stops are shown then.
    if (isVisible() && !Running::of(store()).on()) fetch();
  });
  connect(&Running::of(store()), &Running::changed, this, [this] {
    if (isVisible() && stale_ && !Running::of(store()).on()) fetch();
  });
  connect(&store(), &SnapshotStore::tensorArrived, this, [this](int value) {
    if (value != value_) return;
    // Another view asked for a part of it: the one that is looked at is asked for again.
    const TensorPtr tensor = store().tensor(value);
    const std::vector<std::int64_t>& begin = elements_->wanted().begin;
    const bool ours = !tensor || tensor->data().empty() || tensor->begin_size() == 0 ||
                      (std::equal(tensor->begin().begin(), tensor->begin().end(), begin.begin(), begin.end()) &&
                       (tensor->extent_size() == 0 || elements_->wanted().extent.empty() ||
                        tensor->extent(0) == elements_->wanted().extent[0]));
    if (!ours && !asked_ && isVisible()) return fetch();
    if (ours || !isVisible()) asked_ = false;
    refresh();
  });
  const auto facts = [this] { facts_->showValue(value_); };
  connect(&Running::of(store()), &Running::changed, this, facts);
  connect(&store(), &SnapshotStore::pinnedChanged, this, facts);
  connect(&store(), &SnapshotStore::watchedChanged, this, facts);
  connect(&store().findings(), &Findings::editedChanged, this, facts);
  followSelection();
}

QString TensorsView::emptyText() const {
  if (!store().graph()) return QStringLiteral("No model is open.\nOpen one (Ctrl+O) and select a node or a tensor.");
  return value_ < 0 ? QStringLiteral("No tensor is selected.\nSelect an instruction, a node or an edge of the graph.")
                    : QString();
}

void TensorsView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  if (stale_) fetch();
}

void TensorsView::dragEnterEvent(QDragEnterEvent* event) {
  if (value_ >= 0 && !draggedArray(*event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void TensorsView::dropEvent(QDropEvent* event) {
  elements_->openPage(ElementsPanel::kCompare);
  elements_->comparison().compareWithFile(draggedArray(*event->mimeData()));
}

std::vector<std::int64_t> TensorsView::dims() const {
  if (const TensorPtr t = store().tensor(value_); t && (t->dims_size() > 0 || t->data().size() > 0))
    return {t->dims().begin(), t->dims().end()};
  std::vector<std::int64_t> dims;
  const auto* v = store().graph() ? store().graph()->value(value_) : nullptr;
  if (!v) return {};
  for (const auto& d : v->dims()) {
    bool ok = false;
    dims.push_back(QString::fromStdString(d).toLongLong(&ok));
    if (!ok || dims.back() < 0) return {};
  }
  return dims;
}

void TensorsView::followSelection() {
  fillOperands();
  showValue(selection().selection().value);
}

void TensorsView::fillOperands() {
  operands_->clear();
  const GraphPtr& graph = store().graph();
  if (!graph) return;
  const snapshot::Node* node = graph->node(selection().selection().node);
  const auto add = [&](const QString& kind, int i, int value) {
    if (value >= 0)
      operands_->addItem(QStringLiteral("%1 %2   %3").arg(kind).arg(i).arg(names::value(*graph, value)), value);
  };
  for (int i = 0; node && i < node->outputs_size(); ++i) add(QStringLiteral("out"), i, node->outputs(i));
  for (int i = 0; node && i < node->inputs_size(); ++i) add(QStringLiteral("in"), i, node->inputs(i));
  const int at = operands_->findData(selection().selection().value);
  if (at < 0 && selection().selection().value >= 0) {
    operands_->insertItem(0, names::value(*graph, selection().selection().value), selection().selection().value);
  }
  operands_->setCurrentIndex(std::max(0, at));
}

void TensorsView::showValue(int value) {
  const bool another = value != value_;
  value_ = value;
  emit emptyChanged();
  elements_->setValue(value_, dims());
  if (value_ < 0) return;
  if (another) {
    stale_ = true;
    if (isVisible()) fetch();
  }
  refresh();
}

void TensorsView::fetch() {
  stale_ = false;
  if (value_ < 0 || store().readOnly()) return;
  const std::vector<std::int64_t> d = dims();
  elements_->setValue(value_, d);
  const auto* v = store().graph() ? store().graph()->value(value_) : nullptr;
  const bool known = !d.empty() || (v && v->rank_known() && v->dims_size() == 0);
  const Slice& wanted = elements_->wanted();
  std::vector<qint64> begin(wanted.begin.begin(), wanted.begin.end()), extent(wanted.extent.begin(), wanted.extent.end());
  // Extents that are not known yet: one element brings them along.
  if (!known && v) {
    begin.assign(static_cast<std::size_t>(v->dims_size()), 0);
    extent.assign(static_cast<std::size_t>(v->dims_size()), 1);
  }
  asked_ = true;
  emit wishes().fetchTensor(value_, begin, extent);
}

void TensorsView::refresh() {
  if (value_ < 0) return;
  const TensorPtr tensor = store().tensor(value_);
  // The first answer about a value of unknown shape is one element; now its plane can be asked for.
  const bool unfolded = tensor && tensor->dims_size() > 0 &&
                        elements_->wanted().extent.size() != static_cast<std::size_t>(tensor->dims_size());
  elements_->setValue(value_, dims());
  if (unfolded) fetch();
  facts_->showValue(value_);
  const std::int64_t step = store().statisticsStep(value_);
  statistics_->set(store().statistics(value_), step, step == store().presentStep(), tensor);
  elements_->refresh();
  openAtNotFinite();
}

// Once for each value at a stop: who then looks at another part is left there.
void TensorsView::openAtNotFinite() {
  const TensorPtr tensor = store().tensor(value_);
  const auto& p = store().position();
  if (!standsAtNumber(store()) || !tensor || tensor->step() != p.step() || tensor->first_not_finite_size() == 0) return;
  const OpenedAt place{p.step(), p.instruction(), value_};
  if (openedAt_ == place) return;
  openedAt_ = place;
  elements_->show({tensor->first_not_finite().begin(), tensor->first_not_finite().end()});
}

void TensorsView::openMenu() {
  if (value_ < 0) return;
  QMenu* menu = makeTensorMenu(context(), value_, this, [this] { elements_->comparison().keep(); });
  connect(menu, &QMenu::triggered, this, [this](const QAction* action) {
    if (action->objectName() == u"tensor_keep" || action->objectName() == u"tensor_compare")
      elements_->openPage(ElementsPanel::kCompare);
  });
  menu->popup(more_->mapToGlobal(QPoint(0, more_->height())));
}

}  // namespace stepscope
