// SPDX-License-Identifier: GPL-3.0-or-later
// Immutable snapshots with their lookup tables. Made on any thread, then shared as shared_ptr<const T>.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"

namespace stepscope {

// A graph and where everything is in it. Positions are indices into graph.nodes() and graph.values(); -1 where there is
// none. Ids of a message that came from outside may be anything: they are only ever looked up, never used as an index.
class GraphSnapshot {
 public:
  static std::shared_ptr<const GraphSnapshot> make(snapshot::Graph graph);

  const snapshot::Graph& graph() const { return graph_; }
  int nodeCount() const { return graph_.nodes_size(); }

  int nodePosition(int nodeId) const { return find(nodePosition_, nodeId); }
  int valuePosition(int valueId) const { return find(valuePosition_, valueId); }
  const snapshot::Node* node(int nodeId) const;  // nullptr when there is none
  const snapshot::Value* value(int valueId) const;

  int producer(int valueId) const { return find(producer_, valueId); }  // node id; -1 for inputs and state
  const std::vector<int>& consumers(int valueId) const;                 // node ids in execution order
  // Nodes whose provenance names this node as their forward node: its gradient and recomputed nodes, in execution order.
  const std::vector<int>& mirrored(int forwardNodeId) const;
  int forwardOf(int nodeId) const;  // provenance.forward when that node is live; else -1

 private:
  static int find(const std::unordered_map<int, int>& map, int key);

  snapshot::Graph graph_;
  std::unordered_map<int, int> nodePosition_, valuePosition_, producer_;
  std::unordered_map<int, std::vector<int>> consumers_, mirrored_;
};

// A plan whose indices were checked: instruction and buffer numbers out of range were set to -1, positions equal indices.
class PlanSnapshot {
 public:
  static std::shared_ptr<const PlanSnapshot> make(snapshot::Plan plan);

  const snapshot::Plan& plan() const { return plan_; }
  int size() const { return plan_.instructions_size(); }
  const snapshot::Instruction* instruction(int index) const;  // nullptr when out of range
  const snapshot::Buffer* buffer(int index) const;

  int instructionOfNode(int nodeId) const { return find(ofNode_, nodeId); }
  int bufferOfValue(int valueId) const { return find(ofValue_, valueId); }
  int producerOfValue(int valueId) const { return find(producer_, valueId); }  // instruction
  const std::vector<int>& users(int bufferIndex) const;                        // instructions that touch it, ascending
  // The buffer whose own memory this one uses, after following views and in-place chains.
  int root(int bufferIndex) const;
  // The instruction that first overwrites the arena memory of this buffer, in its place or after its last use; -1 when it
  // stays.
  int overwrittenBy(int bufferIndex) const;
  // First index of the phase that instruction `index` belongs to, and one past its last. Recomputed instructions lie within
  // the backward phase, which they serve.
  std::pair<int, int> phaseRange(int index) const;

 private:
  static int find(const std::unordered_map<int, int>& map, int key);

  snapshot::Plan plan_;
  std::unordered_map<int, int> ofNode_, ofValue_, producer_;
  std::vector<std::vector<int>> users_;
};

}  // namespace stepscope
