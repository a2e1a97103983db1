// SPDX-License-Identifier: GPL-3.0-or-later
// Which batch the view shows: the one that is in memory, or that of a recorded step.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

class BatchSource {
 public:
  explicit BatchSource(const SnapshotStore& store) : store_(store) {}

  // nullptr: the batch in memory; a project without a worker has none. True when another one is shown now.
  bool show(StepPtr recorded);
  // A step whose batch was not recorded, and what to say of it. Its record may have other facts of its batch, or is nullptr.
  bool showWithout(StepPtr step, const QString& why);

  const StepPtr& recorded() const { return recorded_; }
  const QString& missing() const { return missing_; }  // of showWithout; else empty
  // The record of the step that is shown; nullptr: the newest one has it.
  const StepPtr& facts() const { return recorded_ ? recorded_ : without_; }
  // Whether the values of the batch can be asked for.
  bool live() const { return !recorded_ && missing_.isEmpty() && !store_.readOnly(); }

  std::int64_t step() const;  // -1 before the first
  const snapshot::TensorStatistics* statistics(int input) const;
  const snapshot::TensorData* kept(
      int input) const;  // of a recorded step: what was recorded of an input, found by its name; nullptr otherwise
  TensorPtr contents(int input) const;                           // the same, when contents were kept
  std::shared_ptr<const snapshot::RowLosses> rowLosses() const;  // of a recorded step; nullptr otherwise

 private:
  const SnapshotStore& store_;
  StepPtr recorded_, without_;
  QString missing_;
};

// Whether the record has something of its batch.
bool hasBatch(const snapshot::StepRecord& step);

// The newest `most` steps whose batch is recorded, newest first.
std::vector<StepPtr> recordedBatches(const SnapshotStore& store, std::size_t most);

}  // namespace stepscope
