// What a value is to the operators that read it: where a file stores weights as constants, the place where a constant is
// read is all that tells a weight from a number.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/ir/graph.h"

namespace stepscope {

struct WeightRole {
  std::string_view what;                       // "weight", "bias", "scale", "slope", "embedding table", "running statistic"
  NodeId node;                                 // that reads it so
  std::string text(const Graph& graph) const;  // "weight of Conv 'conv1'"
};

// The first reader, through Identity, Cast, Transpose and what else leaves the numbers alone, Slice and Split, and Concat of
// stored values alone (exporters sort the gates of an LSTM with these), in whose table the value is a weight: weights,
// biases and recurrent matrices of products and convolutions, scale, bias and statistics of normalisations, slopes of PRelu,
// the table of a Gather; what is added to the result of a product; scale and bias behind the division of a normalisation
// that is written out.
std::optional<WeightRole> weightRole(const Graph& graph, const UseTable& uses, ValueId value);

// Whether all that is done with the value is elementwise arithmetic, comparison, selection or clipping.
bool onlyArithmetic(const Graph& graph, const UseTable& uses, ValueId value);

// Whether the value is a scale of ones or a bias of zeros that GroupNormalization does not have, but the
// InstanceNormalization needs that exporters write it with, between two Reshapes. Its own scale and bias come behind it.
bool isNeutralInGroupNorm(const Graph& graph, const UseTable& uses, ValueId value);

}  // namespace stepscope
