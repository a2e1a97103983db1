// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/row_table.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QStyledItemDelegate>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kCellPadding = 8;  // as the titles of the columns have, by the style sheet
constexpr int kTextMargin = 4;   // of the style, around the text of an item

// Cell text with a share bar below it; everything else as the style does.
class BarDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const double share = index.data(RowTableModel::kShareRole).toDouble();
    if (share >= 0) {
      const Tokens& t = Tokens::current();
      if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, t.select);
      // A line under the number, from where all numbers end: bars of a column are compared by their left ends.
      const double room = option.rect.width() - 2 * kCellPadding, thick = std::max(2.0, 0.2 * Metrics::current().unit);
      const double length = std::max(share > 0 ? 1.0 : 0.0, room * std::clamp(share, 0.0, 1.0));
      painter->fillRect(
          QRectF(option.rect.right() + 1 - kCellPadding - length, option.rect.bottom() - thick - 1, length, thick),
          mixed(t.heatHigh, t.panel, 0.75));
      QStyleOptionViewItem plain(option);
      initStyleOption(&plain, index);
      painter->setFont(plain.font);
      painter->setPen(t.text);
      painter->drawText(option.rect.adjusted(kCellPadding, 0, -kCellPadding, 0), Qt::AlignRight | Qt::AlignVCenter,
                        plain.text);
      return;
    }
    QStyleOptionViewItem padded(option);
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, Tokens::current().select);
    padded.rect.adjust(5, 0, -5, 0);
    QStyledItemDelegate::paint(painter, padded, index);
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    // What a colour says holds for the selected row too.
    if (const QVariant own = index.data(Qt::ForegroundRole); own.isValid()) {
      const Tokens& t = Tokens::current();
      const QColor colour = own.value<QColor>();
      option->palette.setColor(QPalette::HighlightedText, colour == t.faint ? t.muted : colour);
    }
    // A category keeps its hue there too: the style tints what a selected row shows.
    if (const QVariant mark = index.data(Qt::DecorationRole); mark.typeId() == QMetaType::QPixmap) {
      QIcon icon;
      for (const auto mode : {QIcon::Normal, QIcon::Active, QIcon::Selected}) icon.addPixmap(mark.value<QPixmap>(), mode);
      option->icon = icon;
    }
    if (option->rect.width() <= 0) return;  // asked for the size alone
    const int tick = option->features & QStyleOptionViewItem::HasCheckIndicator
                         ? QApplication::style()->pixelMetric(QStyle::PM_IndicatorWidth) + 2 * kTextMargin
                         : 0;
    const int mark =
        tick + (option->features & QStyleOptionViewItem::HasDecoration ? option->decorationSize.width() + kTextMargin : 0);
    option->text = format::elidedPath(option->text, option->fontMetrics, option->rect.width() - mark - 2 * kTextMargin);
  }
};

bool isNumber(const QModelIndex& at) {
  if (at.data(RowTableModel::kSortRole).typeId() != QMetaType::QString) return true;
  bool number = false;
  at.data().toString().toDouble(&number);
  return number;
}

// Its line runs on where no column is.
class LinedHeader : public QHeaderView {
 public:
  explicit LinedHeader(QWidget* parent) : QHeaderView(Qt::Horizontal, parent) { setSectionsClickable(true); }

 protected:
  void paintEvent(QPaintEvent* event) override {
    QHeaderView::paintEvent(event);
    const int end = length() - offset();
    if (end < viewport()->width())
      QPainter(viewport())
          .fillRect(QRect(end, viewport()->height() - 1, viewport()->width() - end, 1), Tokens::current().border);
  }
};

}  // namespace

RowTableModel::RowTableModel(std::vector<TableColumn> columns, QObject* parent)
    : QAbstractTableModel(parent), columns_(std::move(columns)) {}

void RowTableModel::setRows(std::vector<TableRow> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

void RowTableModel::setColumns(std::vector<TableColumn> columns, std::vector<TableRow> rows) {
  beginResetModel();
  columns_ = std::move(columns);
  rows_ = std::move(rows);
  endResetModel();
}

int RowTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int RowTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant RowTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const TableRow& row = rows_[static_cast<std::size_t>(index.row())];
  const auto column = static_cast<std::size_t>(index.column());
  static const TableCell kEmpty;
  const TableCell& cell = column < row.cells.size() ? row.cells[column] : kEmpty;
  switch (role) {
    case Qt::DisplayRole: return cell.text;
    case Qt::ToolTipRole: {
      const QString tip = cell.tip.isEmpty() ? columns_[column].tip : cell.tip;
      // Plain text, whatever a name looks like.
      return tip.isEmpty() ? QVariant()
                           : QVariant(QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(tip.toHtmlEscaped()));
    }
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (columns_[column].number ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::ForegroundRole: {
      const Tokens& t = Tokens::current();
      if (cell.role.contains(u"muted")) return t.muted;
      if (cell.role.contains(u"faint")) return t.faint;
      if (cell.role.contains(u"ok")) return t.ok;
      if (cell.role.contains(u"warn")) return t.warn;
      if (cell.role.contains(u"error")) return t.error;
      if (cell.role.contains(u"accent")) return t.accent;
      return {};
    }
    case Qt::FontRole:
      if (cell.role.contains(u"mono")) return monoFont();
      if (cell.role.contains(u"old")) {
        QFont font = QApplication::font();
        font.setItalic(true);
        return font;
      }
      return {};
    case Qt::DecorationRole:
      if (cell.swatch.isEmpty()) return {};
      return swatch(Tokens::current().category(cell.swatch), qRound(0.62 * Metrics::current().unit),
                    qApp->devicePixelRatio());
    case kSortRole: return cell.sort.isValid() ? cell.sort : QVariant(cell.text);
    case kShareRole: return cell.share;
    case kKeyRole: return row.key;
    default: return {};
  }
}

QVariant RowTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const TableColumn& column = columns_[static_cast<std::size_t>(section)];
  if (role == Qt::DisplayRole) return column.title;
  if (role == Qt::ToolTipRole) return column.tip;
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (column.number ? Qt::AlignRight : Qt::AlignLeft));
  return {};
}

RowTableView::RowTableView(QWidget* parent) : QTableView(parent) {
  const Metrics m = Metrics::current();
  setHorizontalHeader(new LinedHeader(this));
  setItemDelegate(new BarDelegate(this));
  setShowGrid(false);
  setFrameShape(QFrame::NoFrame);
  setSelectionBehavior(SelectRows);
  setSelectionMode(ExtendedSelection);
  setEditTriggers(NoEditTriggers);
  setWordWrap(false);
  setTextElideMode(Qt::ElideMiddle);
  setVerticalScrollMode(ScrollPerPixel);
  setHorizontalScrollMode(ScrollPerPixel);
  setTabKeyNavigation(false);
  setCornerButtonEnabled(false);
  verticalHeader()->hide();
  verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  verticalHeader()->setDefaultSectionSize(m.row);
  verticalHeader()->setMinimumSectionSize(m.row);
  horizontalHeader()->setFixedHeight(qRound(1.9 * m.unit));
  horizontalHeader()->setHighlightSections(false);
  horizontalHeader()->setStretchLastSection(true);
  horizontalHeader()->setFont(smallFont());
  horizontalHeader()->setMinimumSectionSize(2 * m.unit);
  setIconSize({m.unit, m.unit});
  setContextMenuPolicy(Qt::CustomContextMenu);
  connect(this, &QTableView::clicked, this, &RowTableView::tellChosen);
}

void RowTableView::setModel(QAbstractItemModel* model) {
  QTableView::setModel(model);
  connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this, &RowTableView::tellChosen);
  connect(model, &QAbstractItemModel::modelReset, this, &RowTableView::fitColumns);
  connect(horizontalHeader(), &QHeaderView::sectionResized, this, [this](int section) {
    // The last one takes the rest by itself, whatever the reason.
    moved_ = moved_ || (!fitting_ && section + 1 < this->model()->columnCount());
  });
}

// A key selects a row before it becomes the current one, the mouse after it.
void RowTableView::tellChosen() {
  const QModelIndex now = currentIndex();
  if (now.isValid() && selectionModel()->isRowSelected(now.row(), {})) emit chosen(now);
}

void RowTableView::sizeColumns(const std::vector<TableColumn>& columns) {
  columns_ = columns;
  moved_ = false;
  fitColumns();
}

void RowTableView::setEmptyText(const QString& text) {
  empty_ = text;
  viewport()->update();
}

int RowTableView::titleWidth(int column) const {
  return QFontMetrics(smallFont()).horizontalAdvance(columns_[static_cast<std::size_t>(column)].title) +
         2 * Metrics::current().unit;
}

int RowTableView::leastWidth(int column) const {
  const TableColumn& c = columns_[static_cast<std::size_t>(column)];
  if (c.number && !c.texts) return wantedWidth(column);
  const int text = std::min(wantedWidth(column), c.width * Metrics::current().unit);
  return std::max({text, titleWidth(column), wantedWidth(column, Of::kNumbers)});
}

int RowTableView::leastWidth() const {
  int sum = 0;
  for (int i = 0; i < static_cast<int>(columns_.size()); ++i) sum += isColumnHidden(i) ? 0 : leastWidth(i);
  return sum;
}

int RowTableView::wantedWidth(int column, Of cells) const {
  const Metrics m = Metrics::current();
  constexpr int kSamples = 120;
  const int rows = model()->rowCount(), step = std::max(1, rows / kSamples);
  if (rows == 0) return std::max(titleWidth(column), columns_[static_cast<std::size_t>(column)].width * m.unit);
  const QFontMetrics plain(font()), mono(monoFont());
  int text = 0;
  for (int r = 0; r < rows; r += step) {
    const QModelIndex at = model()->index(r, column);
    if (cells == Of::kNumbers && !isNumber(at)) continue;
    const int tick =
        at.data(Qt::CheckStateRole).isValid() ? style()->pixelMetric(QStyle::PM_IndicatorWidth) + 2 * kTextMargin : 0;
    const int mark = tick + (at.data(Qt::DecorationRole).isValid() ? m.unit + 4 : 0);
    const QVariant own = at.data(Qt::FontRole);
    text = std::max(text, mark + (own.isValid() && own.value<QFont>().family() == monoFont().family() ? mono : plain)
                                     .horizontalAdvance(at.data().toString()));
  }
  return std::clamp(std::max(text + 20, titleWidth(column)), 3 * m.unit, 44 * m.unit);
}

void RowTableView::fitColumns() {
  if (!model() || moved_ || fitting_ || columns_.empty() || static_cast<int>(columns_.size()) != model()->columnCount())
    return;
  fitting_ = true;
  const std::size_t count = columns_.size();
  std::vector<int> want, width;
  for (std::size_t i = 0; i < count; ++i) {
    if (isColumnHidden(static_cast<int>(i))) {
      want.push_back(0);
      width.push_back(0);
      continue;
    }
    want.push_back(wantedWidth(static_cast<int>(i)));
    width.push_back(std::min(want.back(), leastWidth(static_cast<int>(i))));
  }
  // As many columns as fit whole share the place. What is left goes to shortened texts, to each the same until it has
  // enough.
  std::size_t whole = 0;
  int rest = viewport()->width();
  for (; whole < count && (whole == 0 || width[whole] <= rest); ++whole) rest -= width[whole];
  // A text that would be out of sight is better shortened.
  if (whole < count && !columns_[whole].number && rest >= 6 * Metrics::current().unit) {
    width[whole++] = rest;
    rest = 0;
  }
  for (bool again = true; again && rest > 0;) {
    again = false;
    int lacking = 0;
    for (std::size_t i = 0; i < whole; ++i) lacking += want[i] > width[i];
    const int share = lacking > 0 ? std::max(1, rest / lacking) : 0;
    for (std::size_t i = 0; i < whole && rest > 0; ++i) {
      const int more = std::min({share, rest, want[i] - width[i]});
      if (more <= 0) continue;
      width[i] += more;
      rest -= more;
      again = true;
    }
  }
  // Nothing else needs what is left over in front of a column that is out of sight.
  if (whole < count && rest > 0) {
    std::size_t widest = 0;
    for (std::size_t i = 1; i < whole; ++i)
      if (width[i] > 0 && !columns_[i].number && columns_[i].width > columns_[widest].width) widest = i;
    width[widest] += rest;
  }
  // A last number does not run away from the others: what is left is the longest text's, which may run out to the right of
  // it. Where columns share the place by themselves there is nothing left.
  const bool shared = horizontalHeader()->sectionResizeMode(static_cast<int>(count) - 1) == QHeaderView::Stretch;
  const bool stretched = !columns_.back().number || shared;
  if (!shared) horizontalHeader()->setStretchLastSection(stretched);
  if (whole == count && rest > 0 && !stretched) {
    std::size_t longest = count;
    for (std::size_t i = 0; i < count; ++i)
      if (width[i] > 0 && !columns_[i].number && (longest == count || columns_[i].width > columns_[longest].width))
        longest = i;
    const auto mixed = std::count_if(columns_.begin(), columns_.end(), [](const TableColumn& c) { return c.texts; });
    if (mixed > 0)
      for (std::size_t i = 0; i < count; ++i) width[i] += columns_[i].texts ? rest / static_cast<int>(mixed) : 0;
    else if (longest < count)
      width[longest] += rest;
  }
  for (std::size_t i = whole; i < count; ++i) width[i] = want[i];
  for (std::size_t i = 0; i < count; ++i)
    if (width[i] > 0) setColumnWidth(static_cast<int>(i), width[i]);
  fitting_ = false;
}

void RowTableView::resizeEvent(QResizeEvent* event) {
  QTableView::resizeEvent(event);
  if (event->size().width() != event->oldSize().width()) fitColumns();
}

void RowTableView::paintEvent(QPaintEvent* event) {
  QTableView::paintEvent(event);
  if (empty_.isEmpty() || !model() || model()->rowCount() > 0) return;
  QPainter painter(viewport());
  painter.setPen(Tokens::current().muted);
  const int margin = 2 * Metrics::current().unit;
  const QRect room = viewport()->rect().adjusted(margin, 0, -margin, 0);
  // Where it has no room whole, it is read from its beginning.
  const bool whole = fontMetrics().boundingRect(room, Qt::AlignCenter | Qt::TextWordWrap, empty_).height() <= room.height();
  painter.drawText(room, (whole ? Qt::AlignCenter : Qt::AlignHCenter | Qt::AlignTop) | Qt::TextWordWrap, empty_);
}

QString RowTableView::chosenAsText() const {
  QStringList lines;
  QModelIndexList rows = selectionModel()->selectedRows();
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.row() < b.row(); });
  for (const QModelIndex& row : std::as_const(rows)) {
    QStringList cells;
    for (int c = 0; c < model()->columnCount(); ++c) cells << row.siblingAtColumn(c).data().toString();
    lines << cells.join('\t');
  }
  return lines.join('\n');
}

void RowTableView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) {
    QApplication::clipboard()->setText(chosenAsText());
    return;
  }
  QTableView::keyPressEvent(event);
}

}  // namespace stepscope
