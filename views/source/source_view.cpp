// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/source/source_view.h"

#include <QApplication>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QJsonDocument>
#include <QJsonObject>
#include <QPointer>
#include <QThreadPool>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"
#include "views/common/turns.h"
#include "views/source/path_map_dialog.h"

namespace stepscope {
namespace {

constexpr std::size_t kMostNodes = 24;  // named below the lines
constexpr int kSmallGraph = 5'000;      // nodes that are gone through at once, without a thread
enum Column { kLine, kTime, kWritten, kAlerts, kCode };

QString codeText(const QString& line) {
  QString spaced = line;
  return format::visible(spaced.replace('\t', QStringLiteral("    ")));
}

}  // namespace

SourceView::SourceView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("source"), QStringLiteral("Source"),
          {{QStringLiteral("Line"),
            QStringLiteral("Line number in the file, as the exporter recorded it; click selects all nodes of the line"),
            true, 4},
           {QStringLiteral("Time"),
            QStringLiteral("Sum of the last times of all instructions that come from this line, gradients included"), true,
            5},
           {QStringLiteral("Written"), QStringLiteral("Sum of the bytes that those instructions write"), true, 6},
           {QStringLiteral("Alerts"), QStringLiteral("Alerts at nodes of this line"), true, 4},
           {QStringLiteral("Code"),
            QStringLiteral("The line of the file where the path map leads to it, else as it was recorded at export"), false,
            30}},
          parent),
      file_(new QComboBox),
      locate_(new QToolButton),
      mapButton_(new QToolButton),
      notice_(new QLabel),
      nodes_(new Details) {
  makeHeader();
  for (const auto signal : {&SnapshotStore::graphChanged, &SnapshotStore::planChanged, &SnapshotStore::stepsChanged,
                            &SnapshotStore::alertsChanged, &SnapshotStore::positionChanged})
    connect(&store(), signal, this, &SourceView::refillLater);
  connect(&store().findings(), &Findings::sourceArrived, this, [this](const QString& path) {
    if (path == local_) fillRows();
  });
  connect(&selection(), &SelectionModel::selectionChanged, this, &SourceView::followSelection);
}

void SourceView::makeHeader() {
  const Metrics m = Metrics::current();
  file_->setAccessibleName(QStringLiteral("File"));
  file_->setObjectName(QStringLiteral("source_file"));
  file_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  file_->setMinimumContentsLength(8);
  locate_->setText(QStringLiteral("Find…"));
  locate_->setToolTip(QStringLiteral("Where this file lies on this machine; files beside it are found from then on"));
  mapButton_->setText(QStringLiteral("Paths…"));
  mapButton_->setToolTip(QStringLiteral("Which folder stands for which recorded path"));
  for (QToolButton* button : {locate_, mapButton_}) button->setAccessibleName(button->toolTip());
  notice_->setProperty("role", "muted");
  notice_->setTextFormat(Qt::PlainText);
  notice_->setWordWrap(true);
  notice_->setContentsMargins(m.padding, 2, m.padding, 4);
  nodes_->setFitContents(true);
  nodes_->setAccessibleName(QStringLiteral("Nodes of the line"));
  auto* line = new QHBoxLayout;
  line->setContentsMargins(qRound(0.6 * m.unit), qRound(0.4 * m.unit), qRound(0.6 * m.unit), 0);
  line->setSpacing(qRound(0.4 * m.unit));
  line->addWidget(file_, 1);
  line->addWidget(locate_);
  line->addWidget(mapButton_);
  body()->insertLayout(0, line);
  body()->insertWidget(1, notice_);
  body()->addWidget(nodes_);
  connect(file_, &QComboBox::activated, this, [this](int i) {
    shown_ = file_->itemData(i).toString();
    chooseFile();
    fillRows();
  });
  connect(locate_, &QToolButton::clicked, this, &SourceView::askFile);
  connect(mapButton_, &QToolButton::clicked, this, &SourceView::editMap);
  connect(nodes_, &Details::selected, this, [this](const Selection& s) {
    // Another node of the line becomes the current one; all of them stay selected.
    Selection wanted = s;
    if (const auto& group = selection().selection().group; group && group->contains(s.node)) wanted.group = group;
    selection().select(wanted);
  });
}

QString SourceView::headerText() const {
  const Selection& s = selection().selection();
  return s.file.isEmpty() || s.line <= 0 ? TablePanel::headerText() : QStringLiteral("line %1").arg(s.line);
}

QString SourceView::emptyText() const {
  if (!store().graph())
    return QStringLiteral("No model is open.\nOpen one (Ctrl+O): the lines its nodes came from appear here.");
  if (store().graph() != looked_) {
    // Asked for with every turn of the window, answered once for a graph.
    looked_ = store().graph();
    const auto& nodes = looked_->graph().nodes();
    hasLines_ =
        std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return !node.provenance().source_file().empty(); });
  }
  if (hasLines_) return {};
  return QStringLiteral(
      "This model records no source lines.\nExport it with torch.onnx.export(..., dynamo=True) to have them.");
}

QString SourceView::saveState() const {
  const QJsonObject state{{QStringLiteral("filter"), TablePanel::saveState()}, {QStringLiteral("paths"), map_.text()}};
  return QString::fromUtf8(QJsonDocument(state).toJson(QJsonDocument::Compact));
}

void SourceView::restoreState(const QString& state) {
  const QJsonObject object = QJsonDocument::fromJson(state.toUtf8()).object();
  TablePanel::restoreState(object[QStringLiteral("filter")].toString());
  setPathMap(PathMap::fromText(object[QStringLiteral("paths")].toString()));
}

void SourceView::setPathMap(PathMap map) {
  map_ = std::move(map);
  chooseFile();
  fillRows();
}

void SourceView::locate(const QString& chosen) {
  if (shown_.isEmpty()) return;
  PathMap map = map_;
  map.add(PathMap::learn(shown_, chosen));
  setPathMap(std::move(map));
}

void SourceView::askFile() {
  if (shown_.isEmpty()) return;
  const QString name = shown_.section('/', -1).section('\\', -1);
  auto* dialog = new QFileDialog(this, QStringLiteral("Where is %1?").arg(format::visible(name)), {},
                                 QStringLiteral("Python (*.py);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, &SourceView::locate);
  dialog->open();
}

void SourceView::editMap() {
  auto* dialog = new PathMapDialog(map_, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &PathMapDialog::changed, this, &SourceView::setPathMap);
  dialog->open();
}

void SourceView::showEvent(QShowEvent* event) {
  TablePanel::showEvent(event);
  followSelection();
}

void SourceView::resizeEvent(QResizeEvent* event) {
  TablePanel::resizeEvent(event);
  // A narrow panel keeps line, time and code; the tooltip of the time has the rest.
  const bool narrow = width() < 36 * Metrics::current().unit;
  for (const int column : {kWritten, kAlerts}) table()->setColumnHidden(column, narrow);
}

void SourceView::followSelection() {
  if (!isVisible() || !store().graph()) return;
  const auto* node = store().graph()->node(selection().selection().node);
  const auto* at = node ? sourceOf(*store().graph(), *node) : nullptr;
  if (at && QString::fromStdString(at->source_file()) != shown_) {
    shown_ = QString::fromStdString(at->source_file());
    refillLater();
    return;
  }
  // Not in the turn of a click: the rows that it stands on would go.
  turns::later(this, [this] { fillRows(); });
}

bool SourceView::readGraph() {
  const GraphPtr graph = store().graph();
  if (index_ && index_->graph == graph) return true;
  if (!graph || graph->nodeCount() <= kSmallGraph) {
    index_ = graph ? SourceIndex::make(graph) : nullptr;
    return true;
  }
  setNothingText(QStringLiteral("Collecting the lines that %1 nodes came from …").arg(format::count(graph->nodeCount())));
  if (indexing_) return false;  // a newer one follows
  indexing_ = true;
  QThreadPool::globalInstance()->start([self = QPointer<SourceView>(this), graph] {
    auto index = SourceIndex::make(graph);
    QMetaObject::invokeMethod(qApp, [self, index] {
      if (!self) return;
      self->indexing_ = false;
      self->index_ = index;
      self->setNothingText({});
      self->refillLater();
    });
  });
  return false;
}

std::map<int, SourceLine> SourceView::linesOf(const QString& file) const {
  // Numbers of nodes mean nothing in another graph.
  return index_ && index_->graph == store().graph() ? sourceLines(store(), *index_, file) : std::map<int, SourceLine>();
}

void SourceView::chooseFile() {
  local_ = shown_.isEmpty() ? QString() : map_.resolve(shown_);
  lines_ = linesOf(shown_);
  if (!local_.isEmpty()) emit wishes().readSource(local_);
}

void SourceView::refill() {
  if (!readGraph()) return;
  static const std::map<QString, SourceIndex::File> kNone;
  const auto& files = index_ ? index_->files : kNone;
  const QString before = shown_;
  if (!files.contains(shown_)) {
    // The one that most of the model came from.
    const auto most = std::max_element(files.begin(), files.end(),
                                       [](const auto& a, const auto& b) { return a.second.nodes < b.second.nodes; });
    shown_ = most == files.end() ? QString() : most->first;
  }
  file_->clear();
  for (const auto& [name, file] : files) {
    file_->addItem(QStringLiteral("%1   %2 nodes").arg(format::visible(name.section('/', -1)), format::count(file.nodes)),
                   name);
    file_->setItemData(file_->count() - 1, format::visible(name), Qt::ToolTipRole);
  }
  file_->setCurrentIndex(file_->findData(shown_));
  file_->setToolTip(format::visible(shown_));
  if (shown_ != before || map_.resolve(shown_) != local_ || (!local_.isEmpty() && !store().findings().source(local_))) {
    chooseFile();
  } else {
    lines_ = linesOf(shown_);
  }
  fillRows();
}

TableRow SourceView::rowOf(int number, const SourceLine& line, const QString& code, std::int64_t most) const {
  TableRow row;
  row.key = number;
  const int chosen = selection().selection().node;
  if (!line.nodes.empty()) {
    const bool holds = std::find(line.nodes.begin(), line.nodes.end(), chosen) != line.nodes.end();
    row.target = Selection::ofNode(holds ? chosen : line.nodes.front());
    row.target.file = shown_;
    row.target.line = number;
    row.target.group = line.group;  // every node of the line, the first of them or the chosen one as the current
  }
  TableCell at(QString::number(number), number);
  at.role = QStringLiteral("faint");
  QString tip;
  if (!line.nodes.empty())
    tip = QStringLiteral("%1\n%2 written\n%3 nodes, %4 alerts")
              .arg(format::timeExact(line.ns), format::bytesExact(line.bytes),
                   format::count(static_cast<std::int64_t>(line.nodes.size())), format::count(line.alerts));
  TableCell time(line.ns > 0 ? format::time(line.ns) : QString(), QVariant::fromValue<qint64>(line.ns), tip);
  if (line.ns > 0) time.share = static_cast<double>(line.ns) / static_cast<double>(most);
  TableCell found(line.alerts > 0 ? format::count(line.alerts) : QString(), line.alerts);
  found.role = QStringLiteral("warn");
  TableCell text(code, number, code);
  text.role = line.nodes.empty() && !local_.isEmpty() ? QStringLiteral("mono muted") : QStringLiteral("mono");
  row.cells = {at,
               time,
               {line.bytes > 0 ? format::bytes(line.bytes) : QString(), QVariant::fromValue<qint64>(line.bytes),
                line.bytes > 0 ? format::bytesExact(line.bytes) : QString()},
               found,
               text};
  return row;
}

void SourceView::fillRows() {
  std::int64_t most = 1;
  for (const auto& [number, line] : lines_) most = std::max(most, line.ns);
  const SourceText* text = local_.isEmpty() ? nullptr : store().findings().source(local_);
  std::vector<TableRow> rows;
  int others = 0;
  if (text && text->problem.isEmpty()) {
    static const SourceLine kNothing;
    for (int i = 0; i < text->lines.size(); ++i) {
      const auto it = lines_.find(i + 1);
      const SourceLine& line = it == lines_.end() ? kNothing : it->second;
      others += !line.code.isEmpty() && line.code.trimmed() != text->lines[i].trimmed();
      rows.push_back(rowOf(i + 1, line, codeText(text->lines[i]), most));
    }
  } else {
    for (const auto& [number, line] : lines_) rows.push_back(rowOf(number, line, codeText(line.code), most));
  }
  QString said;
  if (text && !text->problem.isEmpty()) {
    said = QStringLiteral("%1: %2. Shown as recorded.").arg(format::visible(local_), format::visible(text->problem));
  } else if (text && lines_.size() > 0 && (others > 0 || lines_.rbegin()->first > text->lines.size())) {
    said = QStringLiteral("%1 differs from what was exported: another version of the file?").arg(format::visible(local_));
  } else if (local_.isEmpty() && !shown_.isEmpty()) {
    said = QStringLiteral("Recorded lines only: the file is not at hand. Find it once, and files beside it are found too.");
  }
  notice_->setText(said);
  notice_->setVisible(!said.isEmpty());
  locate_->setEnabled(!shown_.isEmpty());
  setRows(std::move(rows));
  fillNodes();
}

void SourceView::fillNodes() {
  const GraphPtr& graph = store().graph();
  const int chosen = selection().selection().node;
  const SourceLine* line = nullptr;
  int number = 0;
  for (const auto& [at, candidate] : lines_) {
    if (std::find(candidate.nodes.begin(), candidate.nodes.end(), chosen) == candidate.nodes.end()) continue;
    line = &candidate;
    number = at;
  }
  nodes_->setVisible(line != nullptr && graph != nullptr);
  if (!line || !graph) return;
  QStringList links;
  for (std::size_t i = 0; i < line->nodes.size() && i < kMostNodes; ++i) {
    const QString name = names::node(*graph, line->nodes[i]);
    links << (line->nodes[i] == chosen ? Details::strong(name) : Details::link(Selection::ofNode(line->nodes[i]), name));
  }
  if (line->nodes.size() > kMostNodes)
    links << Details::quiet(QStringLiteral("%1 more").arg(line->nodes.size() - kMostNodes));
  nodes_->begin();
  nodes_->paragraph(Details::quiet(QStringLiteral("Line %1: ").arg(number)) +
                    links.join(Details::quiet(QStringLiteral(" · "))));
  nodes_->end();
}

}  // namespace stepscope
