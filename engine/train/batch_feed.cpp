#include "engine/train/batch_feed.h"

#include <fmt/format.h>

#include "engine/snapshot/utf8.h"
#include "engine/train/fit_dims.h"
#include "engine/train/proposed_data.h"

namespace stepscope {

Status BatchFeed::open(const ImportedModel& model, const Graph& graph, const TrainOptions& options,
                       std::vector<std::string>* notes) {
  if (data_) return {};
  if (open_) {
    SS_ASSIGN(data_, open_(graph));
    return {};
  }
  const bool synthetic = options.data.empty();
  SS_ASSIGN(data_, openData(graph, options, model.registry->operators(), notes,
                            synthetic ? dimensions(model, options) : std::vector<DimChoice>{}));
  if (!synthetic || !notes) return {};
  if (const ProposedData proposed = proposeData(model.path, model.graph); !proposed.path.empty())
    notes->push_back(
        toUtf8(fmt::format("data: synthetic; --data {} is there to be used: {}", proposed.path, proposed.reason)));
  return {};
}

const std::vector<DimChoice>& BatchFeed::dimensions(const ImportedModel& model, const TrainOptions& options) const {
  if (!dimensions_ || dimensions_->first != options.dims)
    dimensions_.emplace(options.dims, fitDims(model.graph, options, model.registry->operators()));
  return dimensions_->second;
}

}  // namespace stepscope
