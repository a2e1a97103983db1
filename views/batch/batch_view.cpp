// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/batch_view.h"

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {
namespace {

// What inspection found out about the input; nullptr when it is not of the model.
const snapshot::InputInfo* infoOf(const SnapshotStore& store, const std::string& name) {
  if (!store.model()) return nullptr;
  for (const auto& i : store.model()->inputs()) {
    if (i.name() == name) return &i;
  }
  return nullptr;
}

}  // namespace

BatchView::BatchView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("batch"), tr("Batch"),
                 {{tr("Input"), tr("Name of the graph input; click shows its elements in Tensor"), false, 12},
                  {tr("Shape, type"), tr("Extents of this batch"), false, 16},
                  {tr("Meaning"), tr("How the input is used, as far as the graph tells"), false, 14},
                  {tr("Min"), tr("Smallest finite element"), true, 6},
                  {tr("Max"), tr("Largest finite element"), true, 6},
                  {tr("Zeros"), tr("Share of elements that are zero; for a mask: of masked places; for token ids: often padding"), true, 6},
                  {tr("Negative"), tr("Share of negative elements; for labels: of places that the loss leaves out"), true, 6},
                  {tr("NaN, Inf"), tr("Elements that are not finite"), true, 6}},
                 parent) {
  const auto later = [this] {
    fetched_ = false;
    refillLater();
    if (isVisible()) fetch();
  };
  connect(&store(), &SnapshotStore::graphChanged, this, later);
  connect(&store(), &SnapshotStore::stepsChanged, this, later);
  connect(&store(), &SnapshotStore::positionChanged, this, [this] {
    emit headerChanged();
    if (!fetched_ && isVisible()) fetch();
  });
  connect(&store(), &SnapshotStore::tensorArrived, this, &BatchView::refillLater);
}

QString BatchView::headerText() const {
  return store().steps().empty() ? QString() : tr("last: %1").arg(format::visible(store().steps().back()->batch()));
}

QString BatchView::emptyText() const {
  return store().graph() ? QString() : tr("No model is open.\nOpen one (Ctrl+O): the batch of the present step appears here.");
}

void BatchView::showEvent(QShowEvent* event) {
  TablePanel::showEvent(event);
  if (!fetched_) fetch();
}

void BatchView::fetch() {
  if (!store().graph() || store().readOnly()) return;
  fetched_ = true;
  for (const int id : store().graph()->graph().inputs()) {
    const auto* v = store().graph()->value(id);
    if (!v || v->role() != snapshot::INPUT) continue;
    // Statistics are over the whole input; of the elements one is enough here.
    const std::vector<qint64> begin(static_cast<std::size_t>(v->dims_size()), 0), extent(static_cast<std::size_t>(v->dims_size()), 1);
    if (!store().tensor(id)) emit wishes().fetchTensor(id, begin, extent);
  }
}

void BatchView::refill() {
  std::vector<TableRow> rows;
  if (const GraphPtr& graph = store().graph()) {
    for (const int id : graph->graph().inputs()) {
      const auto* v = graph->value(id);
      if (!v || v->role() != snapshot::INPUT) continue;
      TableRow row;
      row.target = Selection::ofValue(id);
      const auto* info = infoOf(store(), v->name());
      row.cells = {names::value(*graph, id), names::shapeAndType(*v), {info ? format::visible(info->role()) : QString(), {}, info ? format::visible(info->reason()) : QString()}};
      if (const auto* s = store().statistics(id)) {
        const auto share = [s](std::int64_t n) {
          TableCell cell(n == 0 ? QStringLiteral("0") : format::percent(static_cast<double>(n), static_cast<double>(s->count())), QVariant::fromValue<qint64>(n),
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
  }
  setRows(std::move(rows));
}

}  // namespace stepscope
