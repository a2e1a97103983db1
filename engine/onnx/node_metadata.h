// What a saved stage records of a node beyond ONNX: phase, predicates, ids and provenance, as metadata_props
// ("stepscope.phase" …), so that reading the file gives the same graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/unknown_fields.h"

namespace stepscope {

// Keys on tensors, model and nodes that the reader looks for.
inline constexpr const char* kRoleKey = "stepscope.role";          // of an initializer: "state" or "constant"
inline constexpr const char* kCapacityKey = "stepscope.capacity";  // of the model: Graph::nodeCapacity()
inline constexpr const char* kRemovedKey = "stepscope.removed.";   // + id: a removed node as NodeProto bytes
inline constexpr const char* kUpdateKey = "stepscope.update.";     // + index + ".state" / ".next": value names
// Of the model, "pytorch": running statistics are kept as PyTorch keeps them (kernels/running_variance.h), and those in the
// file count no batch that is still to come.
inline constexpr const char* kStatisticsKey = "stepscope.statistics";

// A predicate with its condition by name, as in the file.
struct NamedPredicate {
  std::string condition;
  bool expected = true;
};

// The id that a saved node had; nothing for nodes of other origin.
std::optional<std::int32_t> savedNodeId(const Metadata& metadata);

// Writes phase, provenance, sinceVersion and predicates of a node into its metadata.
void writeNodeMetadata(const Graph& graph, const Node& node, onnx::NodeProto& proto);

// Fills phase, provenance and sinceVersion from a saved node's metadata; ids outside 0..capacity-1 are dropped. Nodes of
// other origin keep what they have. Returns the predicates.
std::vector<NamedPredicate> readNodeMetadata(const Metadata& metadata, std::size_t capacity, Node& node);

}  // namespace stepscope
