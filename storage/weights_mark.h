// Where a run's parameters came from. Numbers of weights that were made up must not pass for a training result: the recorder
// notes it in runs.weights, and every report says so.
#pragma once

#include <string>

namespace stepscope::storage {

inline constexpr const char* kWeightsOfTheModel = "from the model";                // what RunInfo::weights is by default
inline constexpr const char* kRandomWeights = "random, external data is missing";  // after an alert missing_weights

// What a report adds: nothing for the model's own weights.
inline std::string weightsMark(const std::string& weights) {
  return weights == kWeightsOfTheModel ? std::string() : weights;
}

}  // namespace stepscope::storage
