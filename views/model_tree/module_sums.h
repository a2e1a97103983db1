// SPDX-License-Identifier: GPL-3.0-or-later
// The modules of a step with what belongs to them, parts included. Immutable; made on any thread.
#pragma once

#include <QHash>
#include <QStringList>
#include <cstdint>
#include <memory>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

// The module of a node; a gradient node has its forward node's. Empty: the whole model.
QString modulePathOf(const GraphSnapshot& graph, const snapshot::Node& node);

// Ids of the nodes of a module and its parts, of all phases, in execution order. `path` as modulePathOf gives it.
std::vector<int> nodesOfModule(const GraphSnapshot& graph, const QString& path);

struct ModuleSums {
  struct Module {
    int nodes = 0;           // of the whole step
    std::int64_t ns = 0;     // last times of those nodes
    std::int64_t bytes = 0;  // of the parameters its forward nodes read
    std::vector<int> own;    // forward nodes of the module itself, not of its parts
    QStringList parts;       // paths one level below, in the order of the model
  };
  QHash<QString, Module> modules;  // by path; "" is the whole model
  QStringList order;               // of the model

  // `ns`: last time by instruction, below 0 for none.
  static std::shared_ptr<const ModuleSums> make(const GraphPtr& graph, const PlanPtr& plan,
                                                const std::vector<std::int64_t>& ns);
};

}  // namespace stepscope
