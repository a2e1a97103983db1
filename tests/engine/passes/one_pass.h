// What tests of one pass ask on a small graph: how often it applies, why it does not, and whether the step stays.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/passes/sketch.h"
#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {

// Applies the pass, and once more: it finds nothing, and touches nothing.
std::size_t matchesOf(Sketch& s, std::string_view pass);
// The one near miss of a pass that changes nothing.
std::string missOf(Sketch& s, std::string_view pass);

// One step with the pass and one without it: equal losses and gradients. The one with it is answered.
SmallStep sameStep(const std::string& graph, const std::string& pass, const std::vector<std::string>& parameters,
                   std::map<std::string, std::string> settings = {});

// Numbers that differ from their neighbours.
std::vector<float> ramp(std::size_t count, float from = -0.6f, float step = 0.17f);
// Nodes that make "loss" of y.
std::string sumOfSquares(const std::string& y);

}  // namespace stepscope::testing
