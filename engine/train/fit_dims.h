// Extents that the graph itself fixes: a mask of 64 columns, a table of 64 positions. Synthetic data has to keep to them.
//
// The graph is tried with the extents that SyntheticDims would take and with the integers that synthetic data would hold.
// Where shapes contradict each other, or an index leaves its table, the symbols that are still open take the numbers found
// there, the largest that gets further first.
#pragma once

#include <vector>

#include "engine/build/options.h"
#include "engine/ops/operators.h"
#include "engine/train/data.h"
#include "engine/train/synthetic_dims.h"

namespace stepscope {

// Every symbol of the inputs that the options leave open, with the reason for its extent. Where nothing fits, the defaults.
std::vector<DimChoice> fitDims(const Graph& graph, const TrainOptions& options, const Operators& operators);

// An error of shapes may come from synthetic data: adds what each symbol was set to, what the model needs where that is
// known, and how to set it. Other errors, and those of a model without symbols or with data of its own, stay as they are.
Error withDimHint(Error error, const Graph& graph, const TrainOptions& options, const Operators& operators);

}  // namespace stepscope
