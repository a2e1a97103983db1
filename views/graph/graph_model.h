// SPDX-License-Identifier: GPL-3.0-or-later
// What the layout needs to know of a graph: nodes with their lane and anchor, edges, and the tree of module groups.
//
// Nodes are numbered 0 … size-1: first the fed inputs of the graph, then graph.nodes() in execution order, so an edge of a
// sound graph always goes from a lower to a higher number. Immutable after make(), which may run on any thread. Takes
// O(nodes + edges).
//
// Lane: where a node stands. Forward nodes make the left column; gradient and recomputed nodes the right one; weight
// gradients (nodes that only the optimizer or nobody reads) and optimizer nodes stand next to the main line of the right
// column; constants and shape-only sources stand next to their consumer, and so do inputs that no forward node reads.
//
// Anchor: the forward node whose rank a node takes. A gradient node's anchor is its provenance's forward node; where that is
// unknown, the earliest anchor among its producers, then the latest among its consumers. An optimizer node's anchor is the
// first forward reader of its parameter.
//
// Groups follow provenance.module_path, cut at 24 levels. A group is *transparent* (has no box; its content stands in its
// parent) when a box would say nothing: the root, lists of numbered blocks ("transformer.h"), wrappers that hold most of the
// model, and groups of at most four forward nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "views/common/snapshots.h"

namespace stepscope {

enum class Lane : std::uint8_t { kForward, kAside, kGradient, kWeight, kOptimizer };
constexpr bool isForward(Lane lane) { return lane == Lane::kForward || lane == Lane::kAside; }

struct ModelNode {
  int graphNode = -1;   // index into graph.nodes(); -1 for an input
  int inputValue = -1;  // index into graph.values() for an input
  int group = 0;
  int anchor = -1;  // model node; itself for forward nodes; -1 unknown
  Lane lane = Lane::kForward;
  std::uint8_t category = 0;  // of GraphModel::categories(); a gradient node has that of its forward node
};

struct ModelEdge {
  int from = -1, to = -1;  // model nodes
  int value = -1;          // index into graph.values(); -1 when the graph does not describe it
};

struct ModelGroup {
  std::string path;  // "transformer.h.0"; empty for the root. Hostile text.
  int parent = -1;
  int number = -1;  // its last component when that is a number
  bool transparent = false;
  int forwardNodes = 0;         // with everything below
  int gradientNodes = 0;        // backward, recomputed and optimizer nodes, with everything below
  std::uint64_t structure = 0;  // equal for groups of equal content (ops, relative paths, sizes, in order)
  std::vector<int> children;    // by number, then by first node
};

class GraphModel {
 public:
  // Returns nullptr when `cancel` became true.
  static std::shared_ptr<const GraphModel> make(std::shared_ptr<const GraphSnapshot> snapshot,
                                                const std::atomic<bool>& cancel);

  const GraphSnapshot& snapshot() const { return *snapshot_; }
  const std::vector<ModelNode>& nodes() const { return nodes_; }
  const std::vector<ModelEdge>& edges() const { return edges_; }     // by consumer
  const std::vector<ModelGroup>& groups() const { return groups_; }  // parents before children; 0 is the root
  // Operator categories that occur, the first of them "other"; at most 255.
  const std::vector<std::string>& categories() const { return categories_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  bool hasGradient() const { return groups_[0].gradientNodes > 0; }

  // Edges into a node are contiguous in edges(); those out of it are listed by index.
  std::pair<int, int> inEdges(int node) const { return {inStart_[node], inStart_[node + 1]}; }
  const int* outBegin(int node) const { return out_.data() + outStart_[node]; }
  const int* outEnd(int node) const { return out_.data() + outStart_[node + 1]; }

  int ofNodeId(int nodeId) const;                         // -1 when there is none
  const snapshot::Node* node(int modelNode) const;        // nullptr for an input
  const snapshot::Value* value(int valuePosition) const;  // nullptr for -1
  snapshot::Phase phase(int modelNode) const;             // of an input: that of its lane
  int group(const std::string& path) const;               // -1 when there is none

 private:
  void readNodes();
  void readCategories();
  void readEdges();
  void findAnchors();
  void findLanes();
  void settleGroups();
  int groupOf(const std::string& path);

  std::shared_ptr<const GraphSnapshot> snapshot_;
  std::vector<ModelNode> nodes_;
  std::vector<ModelEdge> edges_;
  std::vector<int> inStart_, outStart_, out_;
  std::vector<ModelGroup> groups_;
  std::vector<std::string> categories_;
  std::unordered_map<std::string, int> groupByPath_;
  int inputs_ = 0;
};

}  // namespace stepscope
