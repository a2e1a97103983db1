// A training graph as it is evaluated.
#pragma once

#include <optional>
#include <string_view>

#include "engine/ir/graph.h"

namespace stepscope {

// Dropout hands its input on, BatchNormalization uses its running statistics. `purpose` begins the errors. Error:
// kUnsupported where somebody reads the mask of a Dropout or a statistic of the batch. Types stay as they are.
Status evaluateGraph(Graph& graph, std::string_view purpose);

// What a cross entropy compares.
struct ScoredLabels {
  ValueId scores, labels;               // [N, C, …] and [N, …]
  std::optional<std::int64_t> ignored;  // labels of this value do not count
  bool mean = true;                     // the loss is the mean over the labels that count, without class weights
};
// Of the cross entropy that makes `loss`, past what only gives it another type or shape. Nothing: another loss.
std::optional<ScoredLabels> scoredLabels(const Graph& graph, ValueId loss);

}  // namespace stepscope
