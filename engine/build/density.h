// Phase `inspect inputs`: how much of a batch is padding or ignored labels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/build/batch.h"
#include "engine/build/options.h"
#include "engine/ir/graph.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

// What of the graph's inputs has a density, found once for a build; then every batch can be measured.
//
// Labels: elements that the loss does not ignore. Masks: elements that are not 0. Token ids: elements that are not the
// padding value of --pad, else those where a mask input of the same shape is not 0. Other inputs have none.
class DensityProbe {
 public:
  struct Entry {
    std::string input, kind, reason;
    std::optional<std::int64_t> invalid;  // the value that does not count
    std::string mask;                     // else: counts where this input is not 0
  };

  DensityProbe() = default;
  DensityProbe(const Graph& graph, const Batch& batch, const TrainOptions& options);

  // In the order of the graph's inputs; those that the batch lacks are left out.
  std::vector<snapshot::InputDensity> measure(const Batch& batch) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// "labels 'labels': 410 of 512 valid (80.1 %), ignored label -100".
std::string densityText(const snapshot::InputDensity& density);

}  // namespace stepscope
