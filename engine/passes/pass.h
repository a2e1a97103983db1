// What a pass reports, and what the pipeline knows about one. One pass = one .h + one .cpp with one exported function.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct NearMiss {
  NodeId node;
  std::string condition;  // the first condition that failed, in words
};

struct PassResult {
  std::size_t matches = 0;
  std::vector<NearMiss> nearMisses;
  std::vector<std::string> notes;
};

// A pass that changes nothing leaves the graph's version as it was. It never fails the build because it does not apply.
using PassFunction = Result<PassResult> (*)(Graph& graph, Inference& inference);

struct Pass {
  std::string_view name;  // also the name of the option that switches it: "pass.<name>"
  std::string_view doc;
  PassFunction run;
  bool byDefault = true;  // off: a person decides, because results differ by more than their rounding
};

// The ordered lists of DESIGN §3; the order is explained in each pass's header.
const std::vector<Pass>& preGradientPasses();
const std::vector<Pass>& postGradientPasses();
const std::vector<Pass>& specialisePasses();

}  // namespace stepscope
