// Whether the rows of a batch that count are computed alone: passes sparse_labels (labels) and eliminate_padding (tokens).
//
// Decided for every batch, from the share of elements that count, with hysteresis: up to `enter` they are computed alone,
// above `leave` all rows are, and between the two it stays as it was (the first batch of a build: all rows). Gathering rows
// costs what it saves near these shares; without hysteresis batches around one limit would change plans at every step.
// So within the two limits the plan of a step depends on the steps before it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/build/options.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

struct RowsLimits {
  std::string_view pass;
  double enter = 0, leave = 0;  // shares of elements that count
};
// Of inputs of this kind ("labels", "tokens"); nothing for others.
std::optional<RowsLimits> rowsLimitsOf(std::string_view kind);

struct RowsChoice {
  bool alone = false;  // the rows that count are computed alone
  std::string reason;  // "15.0 % of labels 'labels' count; at most 75 %: they are computed alone"
};
using RowsChoices = std::map<std::string, RowsChoice>;  // by input; only those whose pass is switched on

// `before`: of the step before; empty: there is none.
RowsChoices chooseRows(std::span<const snapshot::InputDensity> batch, const TrainOptions& options,
                       const RowsChoices& before = {});
// Whether a pass that leaves out rows is switched on.
bool choosesRows(const TrainOptions& options);
// Whether they ask for the same step, whatever their reasons.
bool sameRows(const RowsChoices& a, const RowsChoices& b);

}  // namespace stepscope
