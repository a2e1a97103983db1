// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/model_tree/module_sums.h"

#include <QSet>
#include <algorithm>
#include <unordered_map>

#include "views/common/format.h"

namespace stepscope {

QString modulePathOf(const GraphSnapshot& graph, const snapshot::Node& node) {
  const std::string& own = node.provenance().module_path();
  if (!own.empty()) return format::visible(own);
  if (const auto* forward = graph.node(graph.forwardOf(node.id())))
    return format::visible(forward->provenance().module_path());
  return {};
}

std::vector<int> nodesOfModule(const GraphSnapshot& graph, const QString& path) {
  std::vector<int> nodes;
  std::unordered_map<std::string, bool> known;  // thousands of nodes share a path
  for (const auto& node : graph.graph().nodes()) {
    const auto* from = node.provenance().module_path().empty() ? graph.node(graph.forwardOf(node.id())) : &node;
    const auto [at, isNew] = known.try_emplace(from ? from->provenance().module_path() : std::string());
    if (isNew) {
      const QString own = modulePathOf(graph, node);
      at->second = path.isEmpty() || own == path || own.startsWith(path + '.');
    }
    if (at->second) nodes.push_back(node.id());
  }
  return nodes;
}

std::shared_ptr<const ModuleSums> ModuleSums::make(const GraphPtr& graph, const PlanPtr& plan,
                                                   const std::vector<std::int64_t>& ns) {
  auto sums = std::make_shared<ModuleSums>();
  QHash<QString, QSet<int>> counted;
  std::unordered_map<std::string, QString> visible;  // thousands of nodes share a path
  for (const auto& node : graph->graph().nodes()) {
    const auto* from = node.provenance().module_path().empty() ? graph->node(graph->forwardOf(node.id())) : &node;
    auto& path = visible[from ? from->provenance().module_path() : std::string()];
    if (path.isNull()) path = modulePathOf(*graph, node) + QLatin1String("");
    const int at = plan ? plan->instructionOfNode(node.id()) : -1;
    const std::int64_t time = at >= 0 && static_cast<std::size_t>(at) < ns.size()
                                  ? std::max<std::int64_t>(0, ns[static_cast<std::size_t>(at)])
                                  : 0;
    const bool forward = node.phase() == snapshot::FORWARD;
    if (forward) sums->modules[path].own.push_back(node.id());
    for (QString p = path;; p = p.contains('.') ? p.left(p.lastIndexOf('.')) : QString()) {
      Module& module = sums->modules[p];
      if (module.nodes++ == 0) sums->order << p;
      module.ns += time;
      if (forward) {
        for (const int id : node.inputs()) {
          const auto* v = graph->value(id);
          if (!v || v->role() != snapshot::INITIALIZER || counted[p].contains(id)) continue;
          counted[p].insert(id);
          module.bytes += v->bytes();
        }
      }
      if (p.isEmpty()) break;
    }
  }
  const QStringList order = sums->order;
  for (const QString& p : order) {
    if (!p.isEmpty()) sums->modules[p.contains('.') ? p.left(p.lastIndexOf('.')) : QString()].parts << p;
  }
  return sums;
}

}  // namespace stepscope
