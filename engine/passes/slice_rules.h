// How a node computes a part of its result: which operands it then needs in part, along which axis, and which whole. What
// hoist_slices moves is decided here, op by op.
//
//   Softmax(x)[:, 0:1] along another axis   = Softmax(x[:, 0:1])
//   (a + b)[..., p, :], b one row           = a[..., p, :] + b
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/op_registry.h"

namespace stepscope {

// What a node needs for the places p of `axis` of its output 0.
struct PartOf {
  std::string refusal;                           // not empty: it cannot compute them alone, and this is why
  std::vector<std::optional<std::size_t>> axes;  // by input: the axis along which p is taken; nothing: read whole
  bool view = false;                             // moves nothing itself, so that nothing is gained by passing it alone
  bool product = false;                          // a matrix product
  bool draws = false;                            // Dropout: becomes a DropoutPart
  std::size_t taken() const;                     // inputs that are taken in part
};

// Places of one axis, the same for all others. `paired`: of axis 1, for every place of axis 0 its own (GatherND); that axis
// then stays the first.
PartOf partOf(const Graph& graph, const OpRegistry& ops, const Node& node, std::size_t axis, bool paired);

// The same behind a Reshape that makes one axis of the first `merged` axes of the node's result: places are rows of it.
// Inputs with axes[i] = 0 are to be reshaped so too.
PartOf rowsOf(const Graph& graph, const OpRegistry& ops, const Node& node, std::size_t merged);

// How many leading axes of its input a Reshape or Flatten makes the first axis of its result, leaving the others as they
// are; nothing where it does not, or where it is one axis.
std::optional<std::size_t> mergedAxes(const Graph& graph, const Node& node);

// The constant that makes Reshape give `to` for a value of extents `from`; nothing where more than one extent follows from
// the batch.
std::optional<std::vector<std::int64_t>> reshapeTarget(const Shape& from, const Shape& to);

}  // namespace stepscope
