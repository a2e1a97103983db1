// Contents of a value as the messages that views and the wire read.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshot/tensor.pb.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

// What tensorSummary() gives, and the histogram: the same for any number of threads.
snapshot::TensorStatistics tensorStatistics(const TensorView& view);

// The contents of a slice (empty = everything), cut to `limit` elements from the outer axes on, so that rows stay whole as
// long as they can. Error: a slice that does not fit; it names `out.name`.
Status addContents(const TensorView& view, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& extent,
                   std::int64_t limit, snapshot::TensorData& out);

}  // namespace stepscope
