// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/model_tree/model_tree_view.h"

#include <QApplication>
#include <QHeaderView>
#include <QPainter>
#include <QPointer>
#include <QStyledItemDelegate>
#include <QThreadPool>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

enum Role { kNode = Qt::UserRole, kValue, kPath, kFilled };

constexpr int kMostMatches = 200;

// Numbers end where the titles of their columns end; what is selected is so over the whole row.
class PaddedCells : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyleOptionViewItem padded(option);
    if (index.column() > 0) padded.rect.adjust(0, 0, -5, 0);
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, Tokens::current().select);
    QStyledItemDelegate::paint(painter, padded, index);
  }
};

}  // namespace

ModelTreeView::ModelTreeView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("model"), QStringLiteral("Model"), parent),
      filter_(new QLineEdit),
      tree_(new QTreeWidget) {
  const Metrics m = Metrics::current();
  filter_->setPlaceholderText(QStringLiteral("Filter modules"));
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(QStringLiteral("Filter of modules"));
  tree_->setObjectName(QStringLiteral("model_tree"));
  tree_->setAccessibleName(QStringLiteral("Modules"));
  tree_->setItemDelegate(new PaddedCells(tree_));
  tree_->setColumnCount(4);
  tree_->setHeaderLabels(
      {QStringLiteral("Module"), QStringLiteral("Nodes"), QStringLiteral("Time"), QStringLiteral("Weights")});
  tree_->headerItem()->setToolTip(
      1, QStringLiteral("Nodes of the whole step that come from this module: forward, backward, recompute, optimizer"));
  tree_->headerItem()->setToolTip(2, QStringLiteral("Sum of the last times of those nodes"));
  tree_->headerItem()->setToolTip(3, QStringLiteral("Bytes of the parameters that its forward nodes read"));
  for (int c = 1; c < 4; ++c) tree_->headerItem()->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
  tree_->header()->setFont(smallFont());
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  tree_->header()->setMinimumSectionSize(3 * m.unit);
  widths_ = {0, qRound(4.4 * m.unit), qRound(5.0 * m.unit), qRound(5.6 * m.unit)};
  for (int c = 1; c < 4; ++c) tree_->setColumnWidth(c, widths_[static_cast<std::size_t>(c)]);
  tree_->setUniformRowHeights(true);
  tree_->setFrameShape(QFrame::NoFrame);
  tree_->setIndentation(qRound(1.0 * m.unit));
  tree_->setTextElideMode(Qt::ElideMiddle);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* top = new QVBoxLayout;
  top->setContentsMargins(qRound(0.6 * m.unit), qRound(0.4 * m.unit), qRound(0.6 * m.unit), qRound(0.4 * m.unit));
  top->addWidget(filter_);
  layout->addLayout(top);
  layout->addWidget(tree_, 1);
  connect(filter_, &QLineEdit::textChanged, this, &ModelTreeView::applyFilter);
  connect(tree_, &QTreeWidget::itemExpanded, this, &ModelTreeView::fill);
  connect(tree_, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* now) {
    if (!now || selecting_) return;
    selecting_ = true;
    if (now->data(0, kNode).isValid()) {
      selection().select(Selection::ofNode(now->data(0, kNode).toInt()));
    } else if (sums_ && store().graph()) {
      const QString path = now->data(0, kPath).toString();
      std::vector<int> nodes = nodesOfModule(*store().graph(), path);
      if (!nodes.empty()) {
        Selection all = Selection::ofNode(nodes.front());
        if (!path.isEmpty()) all.group = NodeGroup::make(path, std::move(nodes));  // the whole model marks nothing
        selection().select(all);
      }
    }
    selecting_ = false;
  });
  const auto later = [this] {
    stale_ = true;
    emit emptyChanged();
    if (isVisible()) rebuild();
  };
  connect(&store(), &SnapshotStore::graphChanged, this, later);
  connect(&store(), &SnapshotStore::planChanged, this, later);  // the graph comes first, the times before are of another
  connect(&store(), &SnapshotStore::stepsChanged, this, later);
  connect(&selection(), &SelectionModel::selectionChanged, this, &ModelTreeView::showSelection);
}

QString ModelTreeView::headerText() const {
  return sums_ ? QStringLiteral("%1 modules").arg(format::count(sums_->order.size())) : QString();
}
QString ModelTreeView::emptyText() const {
  return store().graph() ? QString() : QStringLiteral("No model is open.\nOpen one (Ctrl+O): its modules appear here.");
}
void ModelTreeView::find() {
  filter_->setFocus();
  filter_->selectAll();
}
void ModelTreeView::enterGroup() {
  if (auto* item = tree_->currentItem()) item->setExpanded(true);
}
void ModelTreeView::leaveGroup() {
  auto* item = tree_->currentItem();
  if (item && item->parent()) {
    item->parent()->setExpanded(false);
    tree_->setCurrentItem(item->parent());
  }
}

void ModelTreeView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  if (stale_) rebuild();
}

void ModelTreeView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  fitColumns();
}

// Names come first: where they have too little room columns of numbers go, an empty one before the others.
void ModelTreeView::fitColumns() {
  enum Column { kNodes = 1, kTime, kWeights };
  const int least = 12 * Metrics::current().unit;
  int left = width() - least;
  std::vector<int> wanted{kNodes, kWeights};
  const auto& steps = store().steps();
  wanted.insert(steps.empty() ? wanted.end() : wanted.begin(), kTime);
  for (const int column : wanted) {
    left -= widths_[static_cast<std::size_t>(column)];
    tree_->setColumnHidden(column, left < 0);
  }
}

void ModelTreeView::rebuild() {
  fitColumns();
  const GraphPtr graph = store().graph();
  if (!graph) {
    stale_ = false;
    show(nullptr);
    return;
  }
  if (summing_) return;  // a newer one follows
  stale_ = false;
  summing_ = true;
  const PlanPtr plan = store().plan();
  std::vector<std::int64_t> ns(plan ? static_cast<std::size_t>(plan->size()) : 0);
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] = store().timing(static_cast<int>(i)).ns;
  QThreadPool::globalInstance()->start([self = QPointer<ModelTreeView>(this), graph, plan, ns = std::move(ns)] {
    auto sums = ModuleSums::make(graph, plan, ns);
    QMetaObject::invokeMethod(qApp, [self, graph, plan, sums] {
      if (!self) return;
      self->summing_ = false;
      if (self->store().graph() == graph && self->store().plan() == plan) self->show(sums);
      if (self->stale_ && self->isVisible()) self->rebuild();
    });
  });
}

void ModelTreeView::show(std::shared_ptr<const ModuleSums> sums) {
  selecting_ = true;
  QStringList open;
  for (auto it = modules_.cbegin(); it != modules_.cend(); ++it) {
    if (it.value()->isExpanded()) open << it.key();
  }
  open.sort();  // parents first
  tree_->clear();
  modules_.clear();
  sums_ = std::move(sums);
  if (sums_ && sums_->modules.contains(QString())) {
    auto* root = makeItem(QString());
    tree_->addTopLevelItem(root);
    fill(root);
    root->setExpanded(true);
    for (const QString& path : std::as_const(open)) {
      if (auto* item = itemOf(path)) item->setExpanded(true);
    }
  }
  selecting_ = false;
  applyFilter();
  showSelection();
  emit headerChanged();
}

QTreeWidgetItem* ModelTreeView::makeItem(const QString& path) {
  const auto module = sums_->modules.constFind(path);
  auto* item = new QTreeWidgetItem;
  item->setText(0, path.isEmpty() ? QStringLiteral("whole model") : path.mid(path.lastIndexOf('.') + 1));
  item->setToolTip(0, path.toHtmlEscaped());
  item->setText(1, format::count(module->nodes));
  item->setText(2, module->ns > 0 ? format::time(module->ns) : QString());
  item->setText(3, module->bytes > 0 ? format::bytes(module->bytes) : QString());
  for (int c = 1; c < 4; ++c) {
    item->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
    item->setForeground(c, Tokens::current().muted);
    item->setFont(c, smallFont());
  }
  item->setData(0, kPath, path);
  item->setSizeHint(0, {0, Metrics::current().row});
  item->setChildIndicatorPolicy(module->own.empty() && module->parts.isEmpty() ? QTreeWidgetItem::DontShowIndicator
                                                                               : QTreeWidgetItem::ShowIndicator);
  modules_.insert(path, item);
  return item;
}

QTreeWidgetItem* ModelTreeView::itemOf(const QString& path) {
  if (auto* item = modules_.value(path)) return item;
  if (!sums_ || path.isEmpty() || !sums_->modules.contains(path)) return nullptr;
  auto* parent = itemOf(path.contains('.') ? path.left(path.lastIndexOf('.')) : QString());
  if (parent) fill(parent);
  return modules_.value(path);
}

void ModelTreeView::fill(QTreeWidgetItem* module) {
  if (module->data(0, kFilled).toBool() || module->data(0, kNode).isValid() || !sums_ || !store().graph()) return;
  module->setData(0, kFilled, true);
  QList<QTreeWidgetItem*> items;
  const auto found = sums_->modules.constFind(module->data(0, kPath).toString());
  if (found == sums_->modules.cend()) return;
  for (const QString& part : found->parts) items << makeItem(part);
  for (const int id : found->own) {
    const auto* node = store().graph()->node(id);
    if (!node) continue;
    auto* item = new QTreeWidgetItem;
    item->setText(0, names::op(*node));
    item->setIcon(0, swatch(Tokens::current().category(QString::fromStdString(node->category())),
                            qRound(0.62 * Metrics::current().unit), devicePixelRatioF()));
    item->setToolTip(0, names::node(*store().graph(), id).toHtmlEscaped());
    item->setForeground(0, Tokens::current().muted);
    item->setData(0, kNode, id);
    const int at = store().plan() ? store().plan()->instructionOfNode(id) : -1;
    item->setText(2, store().timing(at).ns >= 0 ? format::time(store().timing(at).ns) : QString());
    item->setTextAlignment(2, Qt::AlignRight | Qt::AlignVCenter);
    item->setForeground(2, Tokens::current().faint);
    item->setFont(2, smallFont());
    items << item;
  }
  module->addChildren(items);
}

void ModelTreeView::applyFilter() {
  const QString text = filter_->text().trimmed();
  std::vector<QTreeWidgetItem*> matches;
  if (!text.isEmpty() && sums_) {
    for (const QString& path : sums_->order) {
      if (static_cast<int>(matches.size()) >= kMostMatches) break;
      if (!path.contains(text, Qt::CaseInsensitive)) continue;
      if (auto* item = itemOf(path)) matches.push_back(item);
    }
  }
  for (auto* item : std::as_const(modules_)) item->setHidden(!text.isEmpty());
  for (QTreeWidgetItem* match : matches) {
    for (QTreeWidgetItem* item = match; item; item = item->parent()) {
      item->setHidden(false);
      if (item != match) item->setExpanded(true);
    }
  }
}

void ModelTreeView::showSelection() {
  if (selecting_ || !store().graph()) return;
  const auto* node = store().graph()->node(selection().selection().node);
  if (!node) return;
  auto* item = itemOf(modulePathOf(*store().graph(), *node));
  if (!item) return;
  selecting_ = true;
  if (item->isExpanded()) {
    const int id = node->phase() == snapshot::FORWARD ? node->id() : store().graph()->forwardOf(node->id());
    for (int i = 0; i < item->childCount(); ++i) {
      if (item->child(i)->data(0, kNode).isValid() && item->child(i)->data(0, kNode).toInt() == id) {
        item = item->child(i);
        break;
      }
    }
  }
  tree_->setCurrentItem(item);
  selecting_ = false;
}

}  // namespace stepscope
