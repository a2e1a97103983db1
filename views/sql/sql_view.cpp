// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/sql/sql_view.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QVBoxLayout>

#include "engine/snapshot/csv.h"
#include "views/common/format.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"
#include "views/sql/sql_completer.h"

namespace stepscope {

SqlView::SqlView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("sql"), QStringLiteral("SQL"), parent),
      tables_(new QTreeWidget),
      editor_(new QPlainTextEdit),
      run_(new QPushButton(QStringLiteral("Run"))),
      cancel_(new QPushButton(QStringLiteral("Cancel"))),
      export_(new QPushButton(QStringLiteral("Export…"))),
      state_(new QLabel),
      model_(new RowTableModel({}, this)),
      result_(new RowTableView) {
  const Metrics m = Metrics::current();
  tables_->setHeaderHidden(true);
  tables_->setFrameShape(QFrame::NoFrame);
  tables_->setAccessibleName(QStringLiteral("Tables of the project"));
  tables_->setIndentation(m.unit);
  tables_->setToolTip(QStringLiteral("Double-click writes the name into the query"));
  editor_->setFont(monoFont());
  editor_->setAccessibleName(QStringLiteral("Query"));
  editor_->setObjectName(QStringLiteral("sql_editor"));
  editor_->setPlaceholderText(QStringLiteral("SELECT step, loss, ns FROM steps ORDER BY step DESC LIMIT 20"));
  editor_->setTabChangesFocus(true);
  completer_ = new SqlCompleter(editor_, store().project());
  auto* proxy = new QSortFilterProxyModel(this);
  proxy->setSourceModel(model_);
  proxy->setSortRole(RowTableModel::kSortRole);
  result_->setModel(proxy);
  result_->setSortingEnabled(true);
  result_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  proxy->sort(-1);
  result_->setAccessibleName(QStringLiteral("Result"));
  state_->setTextFormat(Qt::PlainText);
  state_->setWordWrap(true);
  state_->setObjectName(QStringLiteral("sql_state"));
  run_->setToolTip(QStringLiteral("Asks the project file, read-only  (Ctrl+Return)"));
  cancel_->setToolTip(QStringLiteral("Stops the query"));
  export_->setToolTip(QStringLiteral("Writes the result as .csv"));
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(m.padding, qRound(0.6 * m.unit), m.padding, 0);
  column->setSpacing(qRound(0.5 * m.unit));
  editor_->setMaximumHeight(qRound(6.5 * m.unit));
  column->addWidget(editor_);
  auto* line = new QHBoxLayout;
  line->addWidget(run_);
  line->addWidget(cancel_);
  line->addWidget(state_, 1);
  line->addWidget(export_);
  column->addLayout(line);
  column->addWidget(result_, 1);
  auto* splitter = new QSplitter;
  splitter->setHandleWidth(1);
  splitter->addWidget(tables_);
  splitter->addWidget(right);
  splitter->setSizes({200, 600});
  splitter->setStretchFactor(1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);
  connect(run_, &QPushButton::clicked, this, &SqlView::run);
  connect(cancel_, &QPushButton::clicked, &wishes(), &Wishes::cancelSql);
  connect(export_, &QPushButton::clicked, this, [this] { emit wishes().exportTable(QStringLiteral("query.csv"), asCsv()); });
  connect(new QShortcut(QKeySequence(Qt::CTRL | Qt::Key_Return), editor_, nullptr, nullptr, Qt::WidgetShortcut),
          &QShortcut::activated, this, &SqlView::run);
  connect(tables_, &QTreeWidget::itemDoubleClicked, this, [this](QTreeWidgetItem* item) {
    const QString name = item->data(0, Qt::UserRole).toString();
    if (!item->parent() && editor_->toPlainText().trimmed().isEmpty()) {
      editor_->setPlainText(QStringLiteral("SELECT * FROM %1 LIMIT 100").arg(name));
    } else {
      editor_->insertPlainText(name);
    }
    editor_->setFocus();
  });
  const ProjectFacts& project = store().project();
  connect(&project, &ProjectFacts::sqlChanged, this, &SqlView::showAnswer);
  connect(&project, &ProjectFacts::projectChanged, this, [this] {
    emit emptyChanged();
    emit headerChanged();
  });
  connect(&project, &ProjectFacts::sqlTextChanged, this, [this] {
    editor_->setPlainText(store().project().sqlText());
    editor_->setFocus();
  });
  showAnswer();
}

QString SqlView::headerText() const { return format::visible(store().project().projectPath().section('/', -1)); }

QString SqlView::emptyText() const {
  return store().project().projectPath().isEmpty() ? QStringLiteral(
                                                         "No project is open.\nA run is recorded into a project as soon as "
                                                         "its model is built; its tables can be asked here.")
                                                   : QString();
}

void SqlView::find() { editor_->setFocus(); }
QString SqlView::saveState() const { return editor_->toPlainText().left(10'000); }
void SqlView::restoreState(const QString& state) { editor_->setPlainText(state.left(10'000)); }

void SqlView::run() {
  completer_->dismiss();
  const QString query = editor_->toPlainText().trimmed();
  if (!query.isEmpty()) emit wishes().runSql(query);
}

void SqlView::showTables() {
  if (tables_->topLevelItemCount() > 0) return;
  for (const SqlTable& table : store().project().tables()) {
    auto* item = new QTreeWidgetItem(tables_, {table.name});
    item->setData(0, Qt::UserRole, table.name);
    item->setToolTip(0, table.doc.toHtmlEscaped());
    item->setSizeHint(0, {0, Metrics::current().row});
    for (const auto& [name, doc] : table.columns) {
      auto* child = new QTreeWidgetItem(item, {doc.isEmpty() ? name : name + QStringLiteral("   ") + doc});
      child->setData(0, Qt::UserRole, name);
      child->setSizeHint(0, {0, Metrics::current().row});
      child->setToolTip(0, doc.toHtmlEscaped());
      child->setForeground(0, Tokens::current().muted);
    }
  }
}

void SqlView::showAnswer() {
  showTables();
  const ProjectFacts& project = store().project();
  run_->setEnabled(!project.sqlRunning());
  cancel_->setVisible(project.sqlRunning());
  const SqlAnswer& answer = project.sql();
  export_->setEnabled(!answer.rows.empty());
  const QString muted = QStringLiteral("muted");
  result_->setEnabled(!project.sqlRunning());  // the rows of the query before
  if (project.sqlRunning()) return say(state_, QStringLiteral("Running …"), muted);
  if (!answer.error.isEmpty()) {
    model_->setColumns({}, {});
    return say(state_, answer.error, QStringLiteral("error"));
  }
  if (answer.columns.isEmpty()) return say(state_, QStringLiteral("Read-only: one SELECT at a time"), muted);
  say(state_,
      (answer.rows.size() == 1 ? QStringLiteral("%1 row in %2%3") : QStringLiteral("%1 rows in %2%3"))
          .arg(format::count(static_cast<std::int64_t>(answer.rows.size())), format::time(answer.ns),
               answer.truncated ? QStringLiteral(", more were left out") : QString()),
      muted);
  std::vector<TableColumn> columns;
  for (qsizetype c = 0; c < answer.columns.size(); ++c) {
    const bool numeric = static_cast<std::size_t>(c) < answer.numeric.size() && answer.numeric[static_cast<std::size_t>(c)];
    columns.push_back({format::visible(answer.columns[c]), {}, numeric, numeric ? 9 : 14});
  }
  std::vector<TableRow> rows;
  rows.reserve(answer.rows.size());
  for (const QStringList& cells : answer.rows) {
    TableRow row;
    for (qsizetype c = 0; c < cells.size(); ++c) {
      const bool numeric = columns[static_cast<std::size_t>(c)].number;
      const QString text = format::visible(cells[c]);
      row.cells.push_back({text, numeric ? QVariant(cells[c].toDouble()) : QVariant(text), text});
    }
    rows.push_back(std::move(row));
  }
  model_->setColumns(columns, std::move(rows));
  result_->sizeColumns(columns);
}

QString SqlView::asCsv() const {
  const auto texts = [](const QStringList& cells) {
    std::vector<std::string> out;
    for (const QString& cell : cells) out.push_back(cell.toStdString());
    return out;
  };
  const SqlAnswer& answer = store().project().sql();
  CsvTable csv(texts(answer.columns));
  for (const QStringList& row : answer.rows) {
    for (const QString& cell : row) csv.field(cell.toStdString());
    csv.endLine();
  }
  return QString::fromStdString(std::move(csv).take());
}

}  // namespace stepscope
