// The rows whose labels count: an input that pass sparse_labels adds to the step, and what every batch gives it.
//
// Its extent K is part of the signature, so it comes in buckets: of sixteenths of all rows, the smallest that holds the rows
// that count. A plan serves a batch that needs up to two buckets less. Rows beyond those that count are one that is ignored,
// whose loss and gradient are 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/build/batch.h"
#include "engine/ir/graph.h"

namespace stepscope {

struct KeptRows {
  std::string input, labels;  // names of graph inputs
  std::int64_t ignored = -100;
};

// Those of the graph.
std::vector<KeptRows> keptRowsOf(const Graph& graph);

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
