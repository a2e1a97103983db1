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

std::map<QString, int> sourceFiles(const GraphSnapshot& graph) {
  std::map<std::string, int> counts;
  for (const auto& node : graph.graph().nodes()) {
    if (const auto* at = sourceOf(graph, node)) ++counts[at->source_file()];
  }
  std::map<QString, int> files;
  for (const auto& [name, count] : counts) files[QString::fromStdString(name)] = count;
  return files;
}

std::map<int, SourceLine> sourceLines(const SnapshotStore& store, const QString& file) {
  std::map<int, SourceLine> lines;
  const GraphPtr& graph = store.graph();
  if (!graph || file.isEmpty()) return lines;
  const std::string wanted = file.toStdString();
  std::unordered_map<int, int> lineOf;  // by node
  for (const auto& node : graph->graph().nodes()) {
    const auto* at = sourceOf(*graph, node);
    if (!at || at->source_file() != wanted || at->source_line() <= 0) continue;
    SourceLine& line = lines[at->source_line()];
    const int instruction = store.plan() ? store.plan()->instructionOfNode(node.id()) : -1;
    if (const auto* in = store.plan() ? store.plan()->instruction(instruction) : nullptr) line.bytes += in->bytes_written();
    line.ns += std::max<std::int64_t>(0, store.timing(instruction).ns);
    if (line.code.isEmpty()) line.code = QString::fromStdString(at->source_code());
    line.nodes.push_back(node.id());
    lineOf.emplace(node.id(), at->source_line());
  }
  for (const auto& alert : store.alerts()) {
    if (const auto it = lineOf.find(alert.node()); it != lineOf.end()) ++lines[it->second].alerts;
  }
  return lines;
}

}  // namespace stepscope
