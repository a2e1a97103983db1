// What a project keeps of the numbers of its steps: densities and contents of batches, losses of rows, statistics of values.
//
// As queries.h: values in file order, contents untrusted. A step that was executed again counts as last executed. A file of
// a version before 3 that is opened for reading has none of them, which is no error.
#pragma once

#include <map>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "engine/snapshot/tensor.pb.h"
#include "engine/snapshot/token_count.h"
#include "storage/error.h"
#include "storage/project.h"
#include "storage/queries.h"

namespace stepscope::storage {

// By steps.id; of the newest `most` steps that have some.
Result<std::map<std::int64_t, std::vector<snapshot::InputDensity>>> readDensities(const Project& project, std::int64_t run,
                                                                                  std::int64_t most);

// Of each of these steps, in their order: how many tokens it was trained on.
Result<std::vector<TokenCount>> readTokenCounts(const Project& project, std::int64_t run, const std::vector<StepRow>& steps);

// The batches that are kept of the newest `most` steps that have one, by steps.id. Contents are read of the newest steps
// while they are no more than `contentBytes` together.
Result<std::map<std::int64_t, std::vector<snapshot::TensorData>>> readBatches(const Project& project, std::int64_t run,
                                                                              std::int64_t most, std::int64_t contentBytes);

// By steps.id; of the newest `most` steps that have some.
Result<std::map<std::int64_t, snapshot::RowLosses>> readRowLosses(const Project& project, std::int64_t run,
                                                                  std::int64_t most);

// Of parameters, gradients and outputs, and of watched values, without histograms, by micro step. Where there are more than
// `most` rows, of which watched values have half, steps are left out evenly: what is kept of a step is whole. `leftOut`: how
// many, of which something is left out.
Result<std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>>> readRecordedStatistics(
    const Project& project, std::int64_t run, std::int64_t most, std::int64_t* leftOut = nullptr);

// What row `stepId` of `steps` has of its batch, added to its record: densities, inputs, losses of rows; contents while they
// are no more than `contentBytes` together.
Status readBatchFactsOf(const Project& project, std::int64_t stepId, std::int64_t contentBytes,
                        snapshot::StepRecord& record);
// All statistics of the steps from `first` to `last`. However many others the run has, only these are read.
Result<std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>>> readStatisticsBetween(const Project& project,
                                                                                                std::int64_t run,
                                                                                                std::int64_t first,
                                                                                                std::int64_t last);

// Statistics of a watched value in one step.
struct WatchedStatistics {
  std::int64_t step = 0;
  std::int32_t value = -1;
  std::string name;
  snapshot::TensorStatistics statistics;
};
// Of watched values, with histograms; the newest of each value and step, ascending by step. At most `most`, the newest.
Result<std::vector<WatchedStatistics>> readWatchedStatistics(const Project& project, std::int64_t run, std::int64_t most);

}  // namespace stepscope::storage
