// The rows that count: inputs that passes sparse_labels (rows whose labels count) and eliminate_padding (tokens that are no
// padding) add to the step, and what every batch gives them.
//
// The extent K is part of the signature, so it comes in buckets: of sixteenths of all rows, the smallest that holds the rows
// that count. A plan serves a batch that needs up to two buckets less. Rows beyond those that count are one that is ignored,
// whose loss and gradient are 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/build/batch.h"
#include "engine/build/density.h"
#include "engine/ir/graph.h"

namespace stepscope {

struct KeptRows {
  std::string input, labels;  // names of graph inputs: a row counts where its element of `labels` is not `ignored`
  std::int64_t ignored = -100;
  // Tokens only: those count too whose element of another input of as many elements is not this value, and of every row of
  // the last axis the first one; of a row without one by `labels` that has one by the others, all.
  bool tokens = false;
  std::vector<std::pair<std::string, std::int64_t>> others = {};
};

// Those of the graph; `density`: of the step that it is.
std::vector<KeptRows> keptRowsOf(const Graph& graph, const DensityProbe& density);
// Whether each element of `labels` counts; empty where the batch lacks it.
std::vector<bool> countedRows(const KeptRows& rows, const Batch& batch);

// The smallest bucket of `elements` rows that holds `count`; at least 1.
std::int64_t bucketOf(std::int64_t count, std::int64_t elements);
// The bucket that the batch needs. 0 where it lacks the labels.
std::int64_t neededRows(const KeptRows& rows, const Batch& batch);
// int64 [extent]; extent: a bucket of at least neededRows(), or all rows.
Result<Tensor> rowsOf(const KeptRows& rows, const Batch& batch, std::int64_t extent);

// With the extents of `rows`.
Signature signatureOf(const Batch& batch, std::span<const KeptRows> rows);
// Of a plan that runs all of the batches, which have one type: with rows for the one that needs most. At least one batch.
Signature signatureOf(std::span<const Batch> batches, std::span<const KeptRows> rows);
bool fits(const Signature& signature, const Batch& batch, std::span<const KeptRows> rows);

}  // namespace stepscope
