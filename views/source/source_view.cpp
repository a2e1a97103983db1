// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/source/source_view.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <map>
#include <set>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {

SourceView::SourceView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("source"), tr("Source"),
                 {{tr("Line"), tr("Line number in the file, as the exporter recorded it"), true, 4},
                  {tr("Time"), tr("Sum of the last times of all instructions that come from this line, gradients included"), true, 6},
                  {tr("Written"), tr("Sum of the bytes that those instructions write"), true, 6},
                  {tr("Alerts"), tr("Alerts at nodes of this line"), true, 4},
                  {tr("Code"), tr("The line as it was recorded at export"), false, 30}},
                 parent),
      file_(new QComboBox) {
  const Metrics m = Metrics::current();
  file_->setAccessibleName(tr("File"));
  auto* line = new QHBoxLayout;
  line->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, 0);
  line->addWidget(file_, 1);
  body()->insertLayout(0, line);
  connect(file_, &QComboBox::activated, this, &SourceView::refillLater);
  connect(&store(), &SnapshotStore::graphChanged, this, &SourceView::refillLater);
  connect(&store(), &SnapshotStore::stepsChanged, this, &SourceView::refillLater);
  connect(&store(), &SnapshotStore::alertsChanged, this, &SourceView::refillLater);
  connect(&selection(), &SelectionModel::selectionChanged, this, [this](const Selection& s) {
    const int at = file_->findData(s.file);
    if (at >= 0 && at != file_->currentIndex()) {
      file_->setCurrentIndex(at);
      refillLater();
    }
  });
}

QString SourceView::headerText() const {
  const Selection& s = selection().selection();
  return s.file.isEmpty() || s.line <= 0 ? TablePanel::headerText() : tr("line %1").arg(s.line);
}

QString SourceView::emptyText() const {
  if (!store().graph()) return tr("No model is open.\nOpen one (Ctrl+O): the lines its nodes came from appear here.");
  if (store().graph() != looked_) {
    // Asked for with every turn of the window, answered once for a graph.
    looked_ = store().graph();
    const auto& nodes = looked_->graph().nodes();
    hasLines_ = std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return !node.provenance().source_file().empty(); });
  }
  if (hasLines_) return {};
  return tr("This model records no source lines.\nExport it with torch.onnx.export(..., dynamo=True) to have them.");
}

void SourceView::refill() {
  struct Line {
    std::int64_t ns = 0, bytes = 0;
    int node = -1;
    QString code;
    std::set<int> nodes;
  };
  const GraphPtr& graph = store().graph();
  std::map<QString, int> files;
  if (graph) {
    for (const auto& node : graph->graph().nodes()) {
      if (!node.provenance().source_file().empty()) ++files[QString::fromStdString(node.provenance().source_file())];
    }
  }
  QString chosen = file_->currentData().toString();
  if (!files.contains(chosen)) chosen = files.contains(selection().selection().file) ? selection().selection().file : files.empty() ? QString() : files.begin()->first;
  file_->clear();
  for (const auto& [name, count] : files) file_->addItem(tr("%1   %2 nodes").arg(format::visible(name), format::count(count)), name);
  file_->setCurrentIndex(file_->findData(chosen));

  std::map<int, Line> lines;
  const std::string chosenFile = chosen.toStdString();
  if (graph && !chosen.isEmpty()) {
    for (const auto& node : graph->graph().nodes()) {
      // A gradient belongs to the line of its forward node.
      const auto* at = &node;
      if (at->provenance().source_file().empty()) at = graph->node(graph->forwardOf(node.id()));
      if (!at || at->provenance().source_file() != chosenFile) continue;
      Line& line = lines[at->provenance().source_line()];
      const int instruction = store().plan() ? store().plan()->instructionOfNode(node.id()) : -1;
      if (const auto* in = store().plan() ? store().plan()->instruction(instruction) : nullptr) line.bytes += in->bytes_written();
      line.ns += std::max<std::int64_t>(0, store().timing(instruction).ns);
      if (line.node < 0) line.node = at->id();
      if (line.code.isEmpty()) line.code = format::visible(at->provenance().source_code());
      line.nodes.insert(node.id());
    }
  }
  std::int64_t most = 1;
  for (const auto& [number, line] : lines) most = std::max(most, line.ns);
  std::vector<TableRow> rows;
  for (const auto& [number, line] : lines) {
    int alerts = 0;
    for (const auto& alert : store().alerts()) alerts += line.nodes.contains(alert.node());
    TableRow row;
    row.target = Selection::ofNode(line.node);
    TableCell at(QString::number(number), number);
    at.role = QStringLiteral("faint");
    TableCell time(line.ns > 0 ? format::time(line.ns) : QString(), QVariant::fromValue<qint64>(line.ns), format::timeExact(line.ns));
    if (line.ns > 0) time.share = static_cast<double>(line.ns) / static_cast<double>(most);
    TableCell found(alerts > 0 ? format::count(alerts) : QString(), alerts);
    found.role = QStringLiteral("warn");
    TableCell code(line.code, line.code, line.code);
    code.role = QStringLiteral("mono");
    row.cells = {at, time, {line.bytes > 0 ? format::bytes(line.bytes) : QString(), QVariant::fromValue<qint64>(line.bytes)}, found, code};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

}  // namespace stepscope
