// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/open_dialog/model_tables.h"

#include <QApplication>
#include <QHeaderView>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <algorithm>
#include <utility>

#include "views/common/format.h"
#include "views/common/row_table.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

template <typename Repeated>
QString dimsText(const Repeated& dims) {
  return format::shapeOf(dims);
}

// Texts on as many lines as they need.
class WrapDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, Tokens::current().select);
    const QVariant own = index.data(Qt::ForegroundRole);
    painter->setPen(own.isValid() ? own.value<QColor>() : Tokens::current().text);
    painter->drawText(textRect(option.rect), kFlags, wrappable(index));
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QRect room = textRect({0, 0, std::max(option.rect.width(), 4 * Metrics::current().unit), 1 << 20});
    return {0, option.fontMetrics.boundingRect(room, kFlags, wrappable(index)).height() + 2 * room.y()};
  }

 private:
  static constexpr int kFlags = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;
  static QRect textRect(const QRect& cell) {
    const Metrics m = Metrics::current();
    const int above = std::max(0, (m.row - QFontMetrics(QApplication::font()).height()) / 2);
    return cell.adjusted(8, above, -8, -above);
  }
  // A path may break after each folder.
  static QString wrappable(const QModelIndex& index) {
    return index.data().toString().replace('/', QStringLiteral("/\u200B"));
  }
};

RowTableView* table(std::vector<TableColumn> columns, std::vector<TableRow> rows) {
  auto* view = new RowTableView;
  auto* rowModel = new RowTableModel(columns, view);
  auto* proxy = new QSortFilterProxyModel(view);
  proxy->setSourceModel(rowModel);
  proxy->setSortRole(RowTableModel::kSortRole);
  rowModel->setRows(std::move(rows));
  view->setModel(proxy);
  view->setSortingEnabled(true);
  view->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  proxy->sort(-1);
  view->sizeColumns(columns);
  return view;
}

}  // namespace

QWidget* inputsTable(const snapshot::ModelInfo& model) {
  std::vector<TableRow> rows;
  for (const auto& i : model.inputs()) {
    TableRow row;
    row.cells = {format::visible(i.name()), dimsText(i.dims()) + QStringLiteral(" · ") + format::visible(i.dtype()),
                 format::visible(i.role()), format::visible(i.reason())};
    row.cells[3].role = QStringLiteral("muted");
    rows.push_back(row);
  }
  return table(
      {{QStringLiteral("Input"), QStringLiteral("Name in the file; arrays of the data are named after it"), false, 14},
       {QStringLiteral("Shape, type"), QStringLiteral("Extents, symbolic ones by name, and type of the elements"), false,
        16},
       {QStringLiteral("Meaning"), QStringLiteral("What synthetic data will hold"), false, 14},
       {QStringLiteral("Reason"), QStringLiteral("How the meaning was found"), false, 14}},
      std::move(rows));
}

QWidget* parametersTable(const snapshot::ModelInfo& model) {
  std::vector<TableRow> rows;
  for (const auto& p : model.parameters()) {
    TableRow row;
    TableCell trained(p.trained() ? QStringLiteral("✓ trained") : QStringLiteral("– frozen"));
    trained.role = p.trained() ? QStringLiteral("ok") : QStringLiteral("muted");
    TableCell reason(!p.missing()                ? format::visible(p.reason())
                     : model.problems_size() > 0 ? QStringLiteral("its data is not there")
                                                 : QStringLiteral("filled from the seed: its data is not there"));
    reason.role = p.missing() ? QStringLiteral("error") : QStringLiteral("muted");
    row.cells = {format::visible(p.name()),
                 dimsText(p.dims()) + QStringLiteral(" · ") + format::visible(p.dtype()),
                 {format::bytes(p.bytes()), QVariant::fromValue<qint64>(p.bytes()), format::bytesExact(p.bytes())},
                 trained,
                 reason};
    rows.push_back(row);
  }
  return table({{QStringLiteral("Parameter"), QStringLiteral("Name of the initializer"), false, 20},
                {QStringLiteral("Shape, type"), QStringLiteral("Extents and type of the elements"), false, 14},
                {QStringLiteral("Bytes"), QStringLiteral("Size in memory"), true, 6},
                {QStringLiteral("Trained"), QStringLiteral("Whether the optimizer changes it"), false, 7},
                {QStringLiteral("Reason"), QStringLiteral("Why it is trained or frozen"), false, 14}},
               std::move(rows));
}

QWidget* operatorsTable(const snapshot::ModelInfo& model) {
  std::vector<TableRow> rows;
  for (const auto& o : model.ops()) {
    const auto mark = [](bool yes) {
      TableCell cell(yes ? QStringLiteral("✓") : QStringLiteral("–"));
      cell.role = yes ? QStringLiteral("ok") : QStringLiteral("error");
      return cell;
    };
    TableRow row;
    TableCell fast = mark(o.has_fast_kernel());
    if (!o.has_fast_kernel()) fast.role = QStringLiteral("faint");
    row.cells = {
        (o.domain().empty() ? QString() : format::visible(o.domain()) + QStringLiteral("::")) + format::visible(o.op()),
        {format::count(o.count()), o.count()},
        mark(o.has_gradient()),
        mark(o.has_kernel()),
        fast,
        format::visible(o.note())};
    rows.push_back(row);
  }
  return table({{QStringLiteral("Operator"), QStringLiteral("Domain and operator"), false, 16},
                {QStringLiteral("Count"), QStringLiteral("Nodes of the model with this operator"), true, 5},
                {QStringLiteral("Gradient"), QStringLiteral("There is a gradient rule"), false, 6},
                {QStringLiteral("Kernel"), QStringLiteral("It can run"), false, 5},
                {QStringLiteral("Fast"), QStringLiteral("There is a fast kernel beside the reference"), false, 5},
                {QStringLiteral("Note"), QStringLiteral("What is special about it here"), false, 20}},
               std::move(rows));
}

QWidget* problemsTable(const snapshot::ModelInfo& model) {
  std::vector<TableRow> rows;
  for (const auto& p : model.problems()) {
    TableRow row;
    TableCell message(format::visible(p.message()), {}, format::visible(p.message()));
    message.role = QStringLiteral("error");
    QString where = format::visible(p.where());
    if (!p.source().empty()) where += QStringLiteral("  ") + format::visible(p.source());
    row.cells = {where, message, format::visible(p.hint())};
    rows.push_back(row);
  }
  std::vector<TableColumn> columns{
      {QStringLiteral("Where"), QStringLiteral("The place in the file, and the source line where it is recorded"), false,
       26},
      {QStringLiteral("Problem"), QStringLiteral("What was found, and what is expected"), false, 40},
      {QStringLiteral("Hint"), QStringLiteral("What helps"), false, 14}};
  if (std::ranges::all_of(model.problems(), [](const auto& p) { return p.hint().empty(); })) columns.pop_back();
  RowTableView* view = table(std::move(columns), std::move(rows));
  view->setWordWrap(true);
  view->setItemDelegate(new WrapDelegate(view));
  const auto fit = [view] { view->resizeRowsToContents(); };
  QObject::connect(view->horizontalHeader(), &QHeaderView::sectionResized, view, fit, Qt::QueuedConnection);
  QObject::connect(view->model(), &QAbstractItemModel::layoutChanged, view, fit);
  fit();
  return view;
}

}  // namespace stepscope
