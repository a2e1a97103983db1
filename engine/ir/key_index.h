// Which nodes and values of one graph compute what keys name, and what became of those that no node computes.
//
// Made from the final graph of a variant. What it stands on: ids keep their meaning over all phases of one build; phases
// write into a node what they made it for (Node::origin); Graph::markImported marks the imported nodes and values; a value
// that took the place of another one (Graph::replaceAllUses) carries its keys; the edit log and provenance.sources tell what
// passes did. So a pass need not know of keys, as long as a result that it computes in another way keeps its ValueId or
// replaces it with replaceAllUses, and the edit log names what was changed.
//
// A node has several keys where it computes what several nodes computed elsewhere; the first is its own, or else that of the
// earliest. Keys are unique: no two nodes, and no two values, of a graph share one. Making it costs O(n log n), as does the
// first call of absence or carrier; a look-up is O(1). Several threads may read it once that first
// call has returned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/keys.h"

namespace stepscope {

class KeyIndex {
 public:
  // `graph` has to outlive the index and stay as it is.
  explicit KeyIndex(const Graph& graph);
  ~KeyIndex();
  KeyIndex(KeyIndex&&) noexcept;
  KeyIndex& operator=(KeyIndex&&) noexcept;

  const Graph& graph() const;

  // The live node that computes it, or the live value that holds it; invalid where there is none. A node key whose result is
  // a constant or an input here (folded, handed on) has no node; its value keys have a value.
  NodeId find(const NodeKey& key) const;
  ValueId find(const ValueKey& key) const;

  // Of live nodes and values; invalid or empty for others, and for constants that the build made. find(keyOf(id)) == id.
  NodeKey keyOf(NodeId node) const;
  ValueKey keyOf(ValueId value) const;
  std::vector<NodeKey> keysOf(NodeId node) const;  // keyOf first
  std::vector<ValueKey> keysOf(ValueId value) const;

  // Why the graph does not compute it: "fused into Gelu 'h.0/Mul' by fuse_gelu", "constant 'x' since fold_constants", "not
  // needed for the loss: removed by attach loss", "pass hoist_slices made no such node here". Empty where find() succeeds.
  std::string absence(const NodeKey& key) const;
  std::string absence(const ValueKey& key) const;

  // The live node that contains the computation: find(key) where that is valid, else the node into which passes fused it;
  // invalid where there is none.
  NodeId carrier(const NodeKey& key) const;
  NodeId carrier(const ValueKey& key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope
