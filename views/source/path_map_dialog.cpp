// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/source/path_map_dialog.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {

PathMap PathMapModel::map() const {
  PathMap map;
  for (const PathMap::Entry& e : entries_) {
    if (!e.folder.isEmpty()) map.add(e);
  }
  return map;
}

void PathMapModel::append(PathMap::Entry entry) {
  beginInsertRows({}, rowCount(), rowCount());
  entries_.push_back(std::move(entry));
  endInsertRows();
}

int PathMapModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}
int PathMapModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant PathMapModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const PathMap::Entry& e = entries_[static_cast<std::size_t>(index.row())];
  const QString& text = index.column() == kPrefix ? e.prefix : e.folder;
  if (role == Qt::EditRole) return text;
  if (role == Qt::DisplayRole)
    return index.column() == kPrefix && text.isEmpty() ? QStringLiteral("(relative names)") : format::visible(text);
  if (role == Qt::FontRole) return monoFont();
  return {};
}

bool PathMapModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !index.isValid() || index.row() >= rowCount()) return false;
  PathMap::Entry& e = entries_[static_cast<std::size_t>(index.row())];
  (index.column() == kPrefix ? e.prefix : e.folder) = value.toString().trimmed();
  emit dataChanged(index, index);
  return true;
}

bool PathMapModel::removeRows(int row, int count, const QModelIndex& parent) {
  if (parent.isValid() || row < 0 || count <= 0 || row + count > rowCount()) return false;
  beginRemoveRows({}, row, row + count - 1);
  entries_.erase(entries_.begin() + row, entries_.begin() + row + count);
  endRemoveRows();
  return true;
}

Qt::ItemFlags PathMapModel::flags(const QModelIndex& index) const {
  return index.isValid() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsEditable | Qt::ItemNeverHasChildren
                         : Qt::NoItemFlags;
}

QVariant PathMapModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::DisplayRole)
    return section == kPrefix ? QStringLiteral("Recorded path begins with") : QStringLiteral("Folder on this machine");
  if (role == Qt::ToolTipRole)
    return section == kPrefix ? QStringLiteral("As the exporter wrote it; empty: every relative name")
                              : QStringLiteral("What stands in its place; only files below it are read");
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignLeft | Qt::AlignVCenter);
  return {};
}

PathMapDialog::PathMapDialog(const PathMap& map, QWidget* parent)
    : QDialog(parent), model_(new PathMapModel(map, this)), table_(new QTableView) {
  const Metrics m = Metrics::current();
  setObjectName(QStringLiteral("path_map"));
  setWindowTitle(QStringLiteral("Path map"));
  resize(52 * m.unit, 24 * m.unit);
  auto* text = new QLabel(
      QStringLiteral("A model names source files where it was exported. The longest prefix that fits is replaced."));
  text->setWordWrap(true);
  text->setProperty("role", "muted");
  table_->setModel(model_);
  table_->setAccessibleName(QStringLiteral("Prefixes and folders"));
  table_->setShowGrid(false);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(m.row);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setColumnWidth(PathMapModel::kPrefix, 24 * m.unit);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
  auto* add = buttons->addButton(QStringLiteral("Add"), QDialogButtonBox::ActionRole);
  auto* remove = buttons->addButton(QStringLiteral("Remove"), QDialogButtonBox::ActionRole);
  connect(add, &QPushButton::clicked, this, [this] {
    model_->append({});
    table_->edit(model_->index(model_->rowCount() - 1, PathMapModel::kPrefix));
  });
  connect(remove, &QPushButton::clicked, this, [this] {
    if (const QModelIndex at = table_->currentIndex(); at.isValid()) model_->removeRow(at.row());
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(buttons, &QDialogButtonBox::accepted, this, [this] {
    table_->setFocus();  // ends an edit that is open
    emit changed(model_->map());
    accept();
  });
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(text);
  layout->addWidget(table_, 1);
  layout->addWidget(buttons);
}

}  // namespace stepscope
