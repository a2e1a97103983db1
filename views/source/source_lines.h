// SPDX-License-Identifier: GPL-3.0-or-later
// What of the step graph came from which line of the user's program.
#pragma once

#include <map>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

struct SourceLine {
  std::int64_t ns = 0;     // sum of the last times of its instructions
  std::int64_t bytes = 0;  // that they write
  int alerts = 0;
  QString code;            // as it was recorded; hostile text
  std::vector<int> nodes;  // in execution order, gradients included
};

// The source place of a node; a gradient has that of its forward node. Nullptr when none is recorded.
const snapshot::Provenance* sourceOf(const GraphSnapshot& graph, const snapshot::Node& node);

// Recorded files with the number of their nodes.
std::map<QString, int> sourceFiles(const GraphSnapshot& graph);
std::map<int, SourceLine> sourceLines(const SnapshotStore& store, const QString& file);

}  // namespace stepscope
