// From the nodes of a run's plan back to those of its file: which imported nodes each one computes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/snapshot/graph.pb.h"
#include "storage/project.h"

namespace stepscope::storage {

struct ImportedNode {
  std::int32_t id = -1;
  std::string op, name, module;
  std::vector<std::int64_t> weight;  // extents of the initializer that is its weight, ascending; empty: none, or not known
  std::int64_t inputElements = 0;    // of its first input; 0 = not known
};

// Graphs of one build: nodes and values keep their ids, so what one graph does not know of a value another may.
class Lineage {
 public:
  // Of the newest build of the run. Error: kNotFound when the project has no graph of it.
  static Result<Lineage> read(const Project& project, std::int64_t run);

  // Forward nodes as they were imported, in order.
  std::vector<ImportedNode> importedNodes() const;
  // The imported nodes that a node of any phase computes, or has the gradient of.
  std::set<std::int32_t> roots(std::int32_t node) const;
  // The one that its place in the graph comes from, -1 = none.
  std::int32_t imported(std::int32_t node) const;
  // The newest graph.
  const snapshot::Graph& last() const { return last_; }

 private:
  std::int64_t elements(std::int32_t value) const;

  bool first_ = false;
  snapshot::Graph imported_, last_;
  std::set<std::int32_t> own_;
  std::map<std::int32_t, snapshot::Node> nodes_;
  std::map<std::int32_t, snapshot::Value> values_;
};

}  // namespace stepscope::storage
