// Which ops there are: found by domain, name and version. Filled once from explicit lists, then only read; the lists of a
// session are its Registry's (build/registry.h), which may hold more than the built-in ops.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/op_def.h"

namespace stepscope {

class OpRegistry {
 public:
  // Adds definitions that outlive the registry. Errors: kInvalidArgument for one that is incomplete (no name, shape rule,
  // category, precision class or word about host inputs; neither gradient nor reason; a side effect that may be recomputed)
  // or listed already, naming it.
  Status add(std::span<const OpDef* const> ops);

  // The newest definition whose since-version is not above `version`, or nullptr. O(1) but for the few versions of one op.
  const OpDef* find(std::string_view domain, std::string_view name, int version = kNewest) const;
  // At the version that the node is written in; nodes that passes make have none and get the newest.
  const OpDef* find(const Node& node) const {
    return find(node.domain, node.op, node.sinceVersion > 0 ? node.sinceVersion : kNewest);
  }
  // Whether the node's op is listed and says so (OpDef::pointwise).
  bool isPointwise(const Node& node) const {
    const OpDef* op = find(node);
    return op && op->pointwise;
  }
  // In the order in which they were added.
  std::span<const OpDef* const> all() const { return all_; }

  static constexpr int kNewest = 1 << 30;

 private:
  std::vector<const OpDef*> all_;
  std::unordered_map<std::string, std::vector<const OpDef*>> byName_;  // "domain\nname" → newest first; never iterated
};

}  // namespace stepscope
