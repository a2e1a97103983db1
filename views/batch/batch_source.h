// SPDX-License-Identifier: GPL-3.0-or-later
// Which batch the view shows: the one that is in memory, or that of a recorded step.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

class BatchSource {
 public:
  explicit BatchSource(const SnapshotStore& store) : store_(store) {}

  // nullptr: the batch in memory; a project without a worker has none.
  void show(StepPtr recorded) { recorded_ = std::move(recorded); }
  const StepPtr& recorded() const { return recorded_; }
  // Whether the values of the batch can be asked for.
  bool live() const { return !recorded_ && !store_.readOnly(); }

  std::int64_t step() const;  // -1 before the first
  const snapshot::TensorStatistics* statistics(int input) const;
  const snapshot::TensorData* kept(
      int input) const;  // of a recorded step: what was recorded of an input, found by its name; nullptr otherwise
  TensorPtr contents(int input) const;                           // the same, when contents were kept
  std::shared_ptr<const snapshot::RowLosses> rowLosses() const;  // of a recorded step; nullptr otherwise

 private:
  const SnapshotStore& store_;
  StepPtr recorded_;
};

// The newest `most` steps whose batch is recorded, newest first.
std::vector<StepPtr> recordedBatches(const SnapshotStore& store, std::size_t most);

}  // namespace stepscope
