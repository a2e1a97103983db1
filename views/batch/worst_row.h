// SPDX-License-Identifier: GPL-3.0-or-later
// Which row of the batch did worst: the largest contribution to the loss, where a NaN beats every number.
#pragma once

#include <optional>

#include "engine/snapshot/worker.pb.h"
#include "views/common/tensor_values.h"

namespace stepscope {

struct WorstRow {
  int row = -1;
  int counted = 0;  // rows that the loss does not ignore
  int sample = -1;  // of the batch, where every sample has as many rows; -1 otherwise
  int place = 0;    // of the row within its sample
  double loss = 0;
  double mean = 0;  // over the finite rows that count
  int notFinite = 0;
};

// Empty when no row counts. `samples`: of the batch; 0 unknown.
std::optional<WorstRow> worstRow(const snapshot::RowLosses& losses, std::int64_t samples);

// The first entry of the first axis that holds a NaN or an infinity; -1 when all elements that are there are finite.
int firstBadSample(const TensorValues& values);

}  // namespace stepscope
