// Computes the scores of those rows alone whose labels the loss does not ignore.
//
//   loss = CrossEntropy(scores [N, C], labels [N])   becomes   CrossEntropy(scores of rows, labels of rows)
//
// `rows` is an input that the pass adds, "<labels>.kept_rows" int64 [K]: the engine fills it for every batch with the rows
// that count, and up to K with rows that are ignored (engine/build/kept_rows.h). The rows are taken as early as the graph
// allows: before the product with the vocabulary, its bias, the norm, the Dropout and the activation in front of it, and
// before the dense layer that these read. Loss and gradients are the same; what an ignored row would have computed is not
// computed. Needs a batch to judge by; whether it is worth it is decided for every batch (engine/build/rows_choice.h). Off
// by default: scores of ignored rows can no longer be looked at. Runs before the gradient.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

inline constexpr std::string_view kKeptRowsSuffix = ".kept_rows";

Status sparseLabels(Graph& graph, PassContext& context);

}  // namespace stepscope
