// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/model_tree/model_tree_view.h"

#include <QHeaderView>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

enum Role { kNode = Qt::UserRole, kValue, kPath, kFilled };

QString pathOf(const GraphSnapshot& graph, const snapshot::Node& node) {
  const std::string& own = node.provenance().module_path();
  if (!own.empty()) return format::visible(own);
  if (const auto* forward = graph.node(graph.forwardOf(node.id()))) return format::visible(forward->provenance().module_path());
  return {};
}

}  // namespace

ModelTreeView::ModelTreeView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("model"), tr("Model"), parent), filter_(new QLineEdit), tree_(new QTreeWidget) {
  const Metrics m = Metrics::current();
  filter_->setPlaceholderText(tr("Filter modules"));
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(tr("Filter of modules"));
  tree_->setObjectName(QStringLiteral("model_tree"));
  tree_->setAccessibleName(tr("Modules"));
  tree_->setColumnCount(4);
  tree_->setHeaderLabels({tr("Module"), tr("Nodes"), tr("Time"), tr("Weights")});
  tree_->headerItem()->setToolTip(1, tr("Nodes of the whole step that come from this module: forward, backward, recompute, optimizer"));
  tree_->headerItem()->setToolTip(2, tr("Sum of the last times of those nodes"));
  tree_->headerItem()->setToolTip(3, tr("Bytes of the parameters that its forward nodes read"));
  for (int c = 1; c < 4; ++c) tree_->headerItem()->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
  tree_->header()->setFont(smallFont());
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  tree_->header()->setMinimumSectionSize(3 * m.unit);
  tree_->setColumnWidth(1, qRound(3.9 * m.unit));
  tree_->setColumnWidth(2, qRound(4.6 * m.unit));
  tree_->setColumnWidth(3, qRound(5.2 * m.unit));
  tree_->setUniformRowHeights(true);
  tree_->setFrameShape(QFrame::NoFrame);
  tree_->setIndentation(qRound(0.75 * m.unit));
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
  connect(tree_, &QTreeWidget::itemExpanded, this, &ModelTreeView::addNodes);
  connect(tree_, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* now) {
    if (!now || selecting_) return;
    selecting_ = true;
    if (now->data(0, kNode).isValid()) {
      selection().select(Selection::ofNode(now->data(0, kNode).toInt()));
    } else if (const auto& nodes = nodesOf_.value(now->data(0, kPath).toString()); !nodes.empty()) {
      selection().select(Selection::ofNode(nodes.front()));
    }
    selecting_ = false;
  });
  const auto later = [this] {
    stale_ = true;
    emit emptyChanged();
    if (isVisible()) rebuild();
  };
  connect(&store(), &SnapshotStore::graphChanged, this, later);
  connect(&store(), &SnapshotStore::stepsChanged, this, later);
  connect(&selection(), &SelectionModel::selectionChanged, this, &ModelTreeView::showSelection);
}

QString ModelTreeView::headerText() const { return modules_.isEmpty() ? QString() : tr("%1 modules").arg(format::count(modules_.size())); }
QString ModelTreeView::emptyText() const { return store().graph() ? QString() : tr("No model is open.\nOpen one (Ctrl+O): its modules appear here."); }
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

void ModelTreeView::rebuild() {
  stale_ = false;
  selecting_ = true;
  QStringList open;
  for (auto it = modules_.cbegin(); it != modules_.cend(); ++it) {
    if (it.value()->isExpanded()) open << it.key();
  }
  tree_->clear();
  modules_.clear();
  nodesOf_.clear();
  const GraphPtr& graph = store().graph();
  if (graph) {
    struct Sum {
      int nodes = 0;
      std::int64_t ns = 0;
      std::int64_t bytes = 0;
    };
    QHash<QString, Sum> sums;
    QStringList order;
    QHash<QString, QSet<int>> counted;
    for (const auto& node : graph->graph().nodes()) {
      const QString path = pathOf(*graph, node);
      const int at = store().plan() ? store().plan()->instructionOfNode(node.id()) : -1;
      const std::int64_t ns = std::max<std::int64_t>(0, store().timing(at).ns);
      if (node.phase() == snapshot::FORWARD) nodesOf_[path].push_back(node.id());
      for (QString p = path;; p = p.contains('.') ? p.left(p.lastIndexOf('.')) : QString()) {
        if (!sums.contains(p)) order << p;
        Sum& sum = sums[p];
        ++sum.nodes;
        sum.ns += ns;
        if (node.phase() == snapshot::FORWARD) {
          for (const int id : node.inputs()) {
            const auto* v = graph->value(id);
            if (v && v->role() == snapshot::INITIALIZER && !counted[p].contains(id)) {
              counted[p].insert(id);
              sum.bytes += v->bytes();
            }
          }
        }
        if (p.isEmpty()) break;
      }
    }
    // Parents before children, children in the order of the model.
    std::stable_sort(order.begin(), order.end(), [](const QString& a, const QString& b) {
      return (a.isEmpty() ? -1 : a.count('.')) < (b.isEmpty() ? -1 : b.count('.'));
    });
    for (const QString& path : std::as_const(order)) {
      const Sum& sum = sums[path];
      const auto dot = path.lastIndexOf('.');
      QTreeWidgetItem* parent = path.isEmpty() ? tree_->invisibleRootItem() : modules_.value(dot < 0 ? QString() : path.left(dot), tree_->invisibleRootItem());
      auto* item = new QTreeWidgetItem(parent);
      item->setText(0, path.isEmpty() ? tr("whole model") : path.mid(dot + 1));
      item->setToolTip(0, path.toHtmlEscaped());
      item->setText(1, format::count(sum.nodes));
      item->setText(2, sum.ns > 0 ? format::time(sum.ns) : QString());
      item->setText(3, sum.bytes > 0 ? format::bytes(sum.bytes) : QString());
      for (int c = 1; c < 4; ++c) {
        item->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
        item->setForeground(c, Tokens::current().muted);
        item->setFont(c, smallFont());
      }
      item->setData(0, kPath, path);
      item->setSizeHint(0, {0, Metrics::current().row});
      item->setChildIndicatorPolicy(nodesOf_.contains(path) ? QTreeWidgetItem::ShowIndicator : QTreeWidgetItem::DontShowIndicatorWhenChildless);
      modules_.insert(path, item);
    }
    if (auto* root = modules_.value(QString())) root->setExpanded(true);
    for (const QString& path : std::as_const(open)) {
      if (auto* item = modules_.value(path)) item->setExpanded(true);
    }
  }
  selecting_ = false;
  applyFilter();
  showSelection();
  emit headerChanged();
}

void ModelTreeView::addNodes(QTreeWidgetItem* module) {
  if (module->data(0, kFilled).toBool() || module->data(0, kNode).isValid() || !store().graph()) return;
  module->setData(0, kFilled, true);
  QList<QTreeWidgetItem*> items;
  for (const int id : nodesOf_.value(module->data(0, kPath).toString())) {
    const auto* node = store().graph()->node(id);
    if (!node) continue;
    auto* item = new QTreeWidgetItem;
    item->setText(0, names::op(*node));
    item->setIcon(0, swatch(Tokens::current().category(QString::fromStdString(node->category())), qRound(0.62 * Metrics::current().unit), devicePixelRatioF()));
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
  for (auto* item : std::as_const(modules_)) item->setHidden(!text.isEmpty());
  if (text.isEmpty()) return;
  for (auto it = modules_.cbegin(); it != modules_.cend(); ++it) {
    if (!it.key().contains(text, Qt::CaseInsensitive)) continue;
    for (QTreeWidgetItem* item = it.value(); item; item = item->parent()) {
      item->setHidden(false);
      if (item != it.value()) item->setExpanded(true);
    }
  }
}

void ModelTreeView::showSelection() {
  if (selecting_ || !store().graph()) return;
  const auto* node = store().graph()->node(selection().selection().node);
  if (!node) return;
  auto* item = modules_.value(pathOf(*store().graph(), *node));
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
