// A step of a run as the record that it was written from.
//
// As queries.h: contents untrusted.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/snapshot/run.pb.h"
#include "storage/error.h"
#include "storage/project.h"
#include "storage/queries.h"

namespace stepscope::storage {

// The columns of a row as a record: without the times of instructions, without what stands in other tables.
snapshot::StepRecord recordOf(const StepRow& row);

// Adds what the instructions of row `stepId` of `steps` took, and what a device did; nothing where none was recorded.
// Errors: kCorrupt, and then nothing is added.
Status readTimesOf(const Project& project, std::int64_t stepId, snapshot::StepRecord& record);

// A row with the times of its instructions and up to `contentBytes` of its batch (readBatchFactsOf); without statistics,
// which readStatisticsBetween() has of several steps.
Result<snapshot::StepRecord> readRecordedStep(const Project& project, const StepRow& row, std::int64_t contentBytes);
// All that the file has of one step as last executed, with statistics. Nothing where the run has no such step.
Result<std::optional<snapshot::StepRecord>> readRecordedStep(const Project& project, std::int64_t run, std::int64_t step,
                                                             std::int64_t contentBytes);

}  // namespace stepscope::storage
