// SPDX-License-Identifier: GPL-3.0-or-later
// What of the step graph came from which line of the user's program.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

struct SourceLine {
  std::int64_t ns = 0;     // sum of the last times of its instructions
  std::int64_t bytes = 0;  // that they write
  int alerts = 0;
  QString code;                            // as it was recorded; hostile text
  std::vector<int> nodes;                  // in execution order, gradients included
  std::shared_ptr<const NodeGroup> group;  // of them; null for one
};

// The source place of a node; a gradient has that of its forward node. Nullptr when none is recorded.
const snapshot::Provenance* sourceOf(const GraphSnapshot& graph, const snapshot::Node& node);

// Which nodes came from which line, by recorded file. Immutable; made on any thread, in O(nodes).
struct SourceIndex {
  struct Line {
    QString code;                            // as it was recorded; hostile text
    std::vector<int> nodes;                  // in execution order, gradients included
    std::shared_ptr<const NodeGroup> group;  // of them; null for one
  };
  struct File {
    int nodes = 0;
    std::map<int, Line> lines;
  };
  GraphPtr graph;
  std::map<QString, File> files;

  static std::shared_ptr<const SourceIndex> make(const GraphPtr& graph);
};

// What the store knows of each line of a file. The index is of the store's present graph.
std::map<int, SourceLine> sourceLines(const SnapshotStore& store, const SourceIndex& index, const QString& file);

}  // namespace stepscope
