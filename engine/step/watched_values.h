// Statistics of the values that a person watches, taken when an instruction has computed them: a moment later their memory
// may be another value's. Neither plan nor numbers change. What is there all the time (inputs, parameters, other state) is
// read where somebody asks.
//
// Of each value there are the numbers of the newest committed step that computed it and those of the step that runs: a step
// that is taken back leaves what was known before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/exec/executor.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

class WatchedValues {
 public:
  struct Numbers {
    snapshot::TensorStatistics statistics;
    std::int64_t step = -1;
    int instruction = -1;  // that computed the value, in the plan of its step
  };
  struct Watched {
    ValueId value;  // of the plan that runs; invalid where that does not have it
    std::optional<Numbers> running, committed;
  };

  void watch(const std::vector<ValueId>& values);  // of those that were watched before the numbers stay
  // The plan that runs from now on calls them so, in the order of watch().
  void rename(const std::vector<ValueId>& values);
  const std::vector<Watched>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

  // Micro step `step` is at its instruction 0: whatever was computed in it or later belongs to a run that was left.
  void begin(std::int64_t step);
  // Whether steps at full speed count histograms too. Records leave them out, so only a step that is looked at needs them.
  void countHistograms(bool on) { histograms_ = on; }
  // `instruction` ran, or ran again; `computed` is false when a condition or the update kept it from running. `walked`: by
  // hand.
  void after(const Executor& executor, int instruction, bool computed, bool walked = true);
  // Contents of `value` that are in memory, of step `step`, whose next instruction is `position`: of a value that is watched
  // from now on, or that was edited. `runs`: the step is not committed.
  void note(const Executor& executor, ValueId value, const TensorView& contents, std::int64_t step, bool runs);
  void drop();  // the step that runs was taken back
  // It was committed: its record gets the statistics of every watched value, without histogram. `read` gives what is there
  // all the time as the step left it.
  void commit(const Graph& graph, const std::function<Result<TensorView>(ValueId)>& read, snapshot::StepRecord& record);
  void takeBackFrom(std::int64_t step);  // what this step and later ones computed is forgotten

  // Of the newest step that has computed it where the next instruction is `position`; null where none has.
  static const Numbers* newest(const Watched& watched, int position);

 private:
  std::vector<Watched> all_;
  std::int64_t step_ = -1;
  bool histograms_ = true;
  std::int64_t ns_ = 0;  // of the step that runs: what looking took
};

}  // namespace stepscope
