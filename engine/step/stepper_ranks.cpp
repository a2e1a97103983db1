// What a step exchanges with other ranks before its commits: running statistics.
#include "engine/step/stepper.h"
#include "engine/step/traced_statistics.h"

namespace stepscope {

// One process that takes the entries of all ranks one after another would update its running statistics as often. Every rank
// has made s_r = m * s + (1 - m) * b_r of the same s and its own batch; the sequence over the ranks is
//
//   s' = s_0,  then  s' = s_r + m * (s' - s)  for rank 1, 2 …
//
// The same bits come of it on all of them.
Status Stepper::joinStatistics() {
  const std::vector<NextStatistic> statistics = nextStatistics(graph());
  if (statistics.empty()) return {};
  std::vector<double> mine;
  std::vector<Tensor> next;
  for (const NextStatistic& statistic : statistics) {
    SS_ASSIGN(const Tensor contents, executor_->read(statistic.update.next));
    next.push_back(contents.clone());
    for (std::int64_t c = 0; c < contents.elements(); ++c) mine.push_back(elementAsDouble(contents.view(), c));
  }
  std::vector<double> all;
  SS_TRY(context_.ranks->gather({"running statistics", context_.state.counters.step}, mine, all));
  std::size_t at = 0;
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    SS_ASSIGN(const Tensor state, executor_->read(statistics[i].update.state));
    for (std::int64_t c = 0; c < next[i].elements(); ++c, ++at) {
      const double old = elementAsDouble(state.view(), c);
      double joined = all[at];
      for (int r = 1; r < context_.ranks->size(); ++r)
        joined = all[mine.size() * static_cast<std::size_t>(r) + at] + statistics[i].momentum * (joined - old);
      storeElement(next[i].view(), c, joined);
    }
    SS_TRY(executor_->write(statistics[i].update.next, next[i].view(), plan().firstCommit));
  }
  return {};
}

}  // namespace stepscope
