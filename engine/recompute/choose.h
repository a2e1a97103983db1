// Phase `recompute`: which candidates are taken, and what that gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/passes/pass.h"
#include "engine/plan/plan.h"
#include "engine/recompute/study.h"

namespace stepscope {

// Entries are separated by commas, blanks around them do not count, of two entries with one pattern the last wins.
// Error: names the entry and the field.
Result<std::vector<RecomputeRequest>> parseRecomputePlan(std::string_view text);

// What was chosen for a budget: places in the candidates of the study (RecomputeStudy::places), and the peak it gives.
struct KnownChoice {
  std::vector<std::size_t> places;
  std::int64_t peak = 0;
};

struct RecomputeOptions {
  std::int64_t budget = 0;  // largest sum of live activation bytes (without workspaces); 0 = no budget
  std::vector<RecomputeRequest> requests;
  PlanOptions plan;  // how the step will be planned: what is kept, in place
  Cancel cancel = {};
  // An earlier answer for the same graph, requests and budget. Taken where the planner gives its peak again; else it is
  // looked for anew.
  std::optional<KnownChoice> known = {};
};

struct RecomputeOutcome {
  PassResult result;  // matches = nodes that run again; notes = the table of patterns and what was chosen
  std::int64_t peakBefore = 0, peakAfter = 0;  // largest sum of live bytes; both 0 when nothing was asked for
  bool overBudget = false;                     // the budget cannot be met; what came nearest is applied
  std::vector<std::string> absent;             // requested patterns that are not in this graph
  KnownChoice choice;                          // where there is a budget: for the next time
  bool knownTaken = false;                     // options.known was right
};

// Requests first, then, while the peak is above the budget, single stashes by what they cost per byte saved, then blocks
// from the front of the model. The peak is the planner's own, on the rewritten graph, never a sum of estimates. Errors are
// the planner's.
Result<RecomputeOutcome> recompute(Graph& graph, Inference& inference, const RecomputeOptions& options);

}  // namespace stepscope
