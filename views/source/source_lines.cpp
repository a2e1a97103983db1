// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/source/source_lines.h"

#include <algorithm>
#include <unordered_map>

namespace stepscope {

const snapshot::Provenance* sourceOf(const GraphSnapshot& graph, const snapshot::Node& node) {
  if (!node.provenance().source_file().empty()) return &node.provenance();
  const auto* forward = graph.node(graph.forwardOf(node.id()));
  return forward && !forward->provenance().source_file().empty() ? &forward->provenance() : nullptr;
}

std::shared_ptr<const SourceIndex> SourceIndex::make(const GraphPtr& graph) {
  auto index = std::make_shared<SourceIndex>();
  index->graph = graph;
  std::unordered_map<std::string, File*> byName;
  for (const auto& node : graph->graph().nodes()) {
    const auto* at = sourceOf(*graph, node);
    if (!at) continue;
    File*& file = byName[at->source_file()];
    if (!file) file = &index->files[QString::fromStdString(at->source_file())];
    ++file->nodes;
    if (at->source_line() <= 0) continue;
    Line& line = file->lines[at->source_line()];
    if (line.code.isEmpty()) line.code = QString::fromStdString(at->source_code());
    line.nodes.push_back(node.id());
  }
  for (auto& [name, file] : index->files)
    for (auto& [number, line] : file.lines)
      line.group =
          NodeGroup::make(QStringLiteral("%1:%2").arg(name.section('/', -1).section('\\', -1)).arg(number), line.nodes);
  return index;
}

std::map<int, SourceLine> sourceLines(const SnapshotStore& store, const SourceIndex& index, const QString& file) {
  std::map<int, SourceLine> lines;
  const auto found = index.files.find(file);
  if (found == index.files.end()) return lines;
  std::unordered_map<int, int> alerts;  // by node
  for (const auto& alert : store.alerts()) ++alerts[alert.node()];
  const PlanPtr& plan = store.plan();
  for (const auto& [number, recorded] : found->second.lines) {
    SourceLine& line = lines[number];
    line.code = recorded.code;
    line.nodes = recorded.nodes;
    line.group = recorded.group;
    for (const int node : recorded.nodes) {
      const int instruction = plan ? plan->instructionOfNode(node) : -1;
      if (const auto* in = plan ? plan->instruction(instruction) : nullptr) line.bytes += in->bytes_written();
      line.ns += std::max<std::int64_t>(0, store.timing(instruction).ns);
      if (alerts.empty()) continue;
      if (const auto it = alerts.find(node); it != alerts.end()) line.alerts += it->second;
    }
  }
  return lines;
}

}  // namespace stepscope
