#include "engine/lab/trial_verdicts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/lab/paired_statistics.h"

namespace stepscope {

void giveVerdicts(snapshot::TrialsReport& report) {
  std::vector<int> measured;
  std::vector<double> p;
  for (int i = 0; i < report.trials_size(); ++i)
    if (report.trials(i).rounds() > 0) {
      measured.push_back(i);
      p.push_back(report.trials(i).p());
    }
  const std::vector<double> adjusted = adjustedByHolm(p);
  for (std::size_t k = 0; k < measured.size(); ++k) {
    snapshot::Trial& trial = *report.mutable_trials(measured[k]);
    trial.set_adjusted_p(adjusted[k]);
    trial.set_verdict(std::string(verdictOf({trial.ratio(), trial.low(), trial.high(), trial.p()}, trial.adjusted_p())));
  }
  for (snapshot::Trial& trial : *report.mutable_trials()) {
    if (trial.verdict().empty()) trial.set_verdict("same");
    if (trial.rounds() == 0) continue;
    if (trial.option() == kTrialOfNothing) {
      report.set_nothing(report.nothing() + 1);
      report.set_nothing_found(report.nothing_found() + (trial.verdict() == "slower" || trial.verdict() == "faster"));
    } else if (trial.option() == kSlowedTrial) {
      report.set_planted(report.planted() + 1);
      report.set_planted_found(report.planted_found() + (trial.verdict() == "slower"));
    }
  }
  // The fastest first, then what has no times, the pairs of nothing at the end.
  const auto rank = [](const snapshot::Trial& t) { return t.option().starts_with('(') ? 2 : t.rounds() == 0 ? 1 : 0; };
  std::stable_sort(report.mutable_trials()->begin(), report.mutable_trials()->end(),
                   [&](const snapshot::Trial& a, const snapshot::Trial& b) {
                     return rank(a) != rank(b) ? rank(a) < rank(b) : rank(a) == 0 && a.ratio() < b.ratio();
                   });
}

}  // namespace stepscope
