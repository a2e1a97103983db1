// What recompute could give for one variant, as RecomputeReport: every pattern alone, what budgets choose, and any other
// choice.
//
// The planner's answers are worked out once per variant; costs are looked up in the newest times of nodes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/recompute/study.h"
#include "engine/snapshot/recompute.pb.h"

namespace stepscope {

// Nanoseconds of running a forward node once, by its index.
struct NodeTimes {
  std::unordered_map<std::int32_t, double> ns;
  double plainStep = 0;    // of the step in which nothing runs again
  bool measured = false;   // otherwise the least that the machine can take
  std::int64_t steps = 0;  // that were measured
  bool cold = false;       // of the first step under the plan
  std::string basis;       // in words
};

// What a report about recompute may be asked: what this plan with this budget (0 = none) would give.
struct RecomputeQuestion {
  std::vector<RecomputeRequest> plan;
  std::int64_t budget = 0;
};

class RecomputeAnalysis {
 public:
  // `graph` is the specialised graph before phase recompute, `inference` knows its values. `before` comes before every plan
  // that is made, with how many were made of how many; an error ends what runs. `complete` gives a plan its arena.
  using Before = std::function<Status(std::int64_t done, std::int64_t total)>;
  RecomputeAnalysis(const Graph& graph, const Inference& inference, const PlanOptions& plan,
                    std::vector<RecomputeRequest> presentRequests, std::int64_t presentBudget, Before before,
                    RecomputeStudy::Complete complete);

  // Nothing when it was done before. Cancelled ones begin again.
  Status prepare();
  // After prepare(). Most bytes of the arena saved first.
  snapshot::RecomputeReport report(const NodeTimes& times) const;
  // What this plan and budget would give. Errors are the planner's, or that of `before`.
  Result<snapshot::RecomputePoint> whatIf(const std::vector<RecomputeRequest>& requests, std::int64_t budget,
                                          const NodeTimes& times);

 private:
  struct Judged {
    std::string pattern;
    RecomputeChoice choice;
    RecomputeEffect effect;
  };
  snapshot::RecomputePattern describe(const Judged& judged, const NodeTimes& times) const;
  snapshot::RecomputePoint describe(const RecomputeChoice& choice, const RecomputeEffect& effect,
                                    const NodeTimes& times) const;

  Graph graph_;
  Inference inference_;
  std::vector<RecomputeRequest> presentRequests_;
  std::int64_t presentBudget_;
  Before before_;
  RecomputeStudy::Complete complete_;
  std::int64_t done_ = 0, total_ = 0;
  RecomputeStudy study_;
  bool prepared_ = false;
  std::int64_t plainPeak_ = 0, plainArena_ = 0;
  Judged present_;
  std::vector<Judged> patterns_, curve_;
};

}  // namespace stepscope
