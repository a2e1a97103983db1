// The candidates of one graph, and what any choice of them gives: the planner's answer on the rewritten graph, never a sum.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/passes/infer.h"
#include "engine/plan/plan.h"
#include "engine/recompute/stashes.h"

namespace stepscope {

// One entry of option recompute.plan, written `PATTERN:1:COUNT` (ONNX Runtime's notation): the first COUNT occurrences of
// the pattern in forward order, -1 = all; `PATTERN:0:COUNT` = none. The pattern `block` stands for repeated modules.
struct RecomputeRequest {
  std::string pattern;
  bool apply = true;
  std::int64_t count = -1;
};

// Which candidates run again; they belong to the study.
using RecomputeChoice = std::vector<const RecomputeCandidate*>;

struct RecomputeEffect {
  std::int64_t peak = 0;         // largest sum of live bytes, without workspaces
  std::int64_t arena = 0;        // of the plan, with workspaces and gaps; 0 where nobody completed it
  std::vector<NodeId> repeated;  // forward nodes that run again, in the order in which they do
};

// Borrows graph and inference, which are specialised and stay as they are. Each evaluation plans a copy of the graph.
class RecomputeStudy {
 public:
  // Called before every evaluation; an error ends what runs.
  using Before = std::function<Status()>;

  RecomputeStudy(const Graph& graph, const Inference& inference, const PlanOptions& plan, Before before = {});
  RecomputeStudy(const RecomputeStudy&) = delete;
  RecomputeStudy& operator=(const RecomputeStudy&) = delete;

  const StashReport& report() const { return report_; }

  // The candidates that the requests name; a pattern that is not there gives none.
  RecomputeChoice requested(const std::vector<RecomputeRequest>& requests) const;
  std::int64_t occurrences(const std::string& pattern) const;
  // The patterns of this graph that a request means: itself where it is one, else those of the same meaning
  // (pattern_meaning.h). In alphabetical order.
  std::vector<std::string> meant(const std::string& pattern) const;

  // Gives a plan its workspaces and offsets (engine/exec/complete_plan.h, which this folder may not know).
  using Complete = std::function<Status(ExecutionPlan&, const Graph&)>;
  // Errors are the planner's, or those of `complete`.
  Result<RecomputeEffect> evaluate(const RecomputeChoice& choice, const Complete& complete = {}) const;

  // The requests, and while the peak is above the budget, single stashes by what they cost per byte saved, then blocks from
  // the front of the model. Out of reach, the lowest of what was tried.
  Result<RecomputeChoice> choose(const std::vector<RecomputeRequest>& requests, std::int64_t budget) const;

  // The choices among which a budget without requests picks, in its order: at most `stashes` steps over the single stashes,
  // then at most `blocks` over the blocks, every one of them the more.
  std::vector<RecomputeChoice> ladder(std::size_t stashes, std::size_t blocks) const;

  // Which candidates a choice takes, counted over stashes, costly and blocks of the report in this order; and back: nothing
  // where a place is none.
  std::vector<std::size_t> places(const RecomputeChoice& choice) const;
  std::optional<RecomputeChoice> choiceAt(const std::vector<std::size_t>& places) const;

  // The choice in the notation of option recompute.plan. `exact` = the notation names this very choice.
  std::string planOf(const RecomputeChoice& choice, bool* exact = nullptr) const;

 private:
  struct Steps;
  Steps stepsAfter(const std::vector<RecomputeRequest>& requests, const RecomputeChoice& requested) const;
  RecomputeChoice all() const;
  template <class Make>
  Result<RecomputeChoice> fewest(std::size_t all, std::int64_t budget, const Make& make) const;

  const Graph& graph_;
  const Inference& inference_;
  PlanOptions plan_;
  Before before_;
  StashReport report_;
  RecomputeChoice byCost_;
};

}  // namespace stepscope
