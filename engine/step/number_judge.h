// Looks while a micro step runs for the numbers that StepContext::numbers names: in watched values, in every value where
// that is wanted, and between backward pass and update in the gradients and the loss. Looking at one in the loss or a
// gradient takes precedence over one in a value on the way.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/build/builder.h"
#include "engine/exec/executor.h"
#include "engine/step/breakpoint.h"
#include "engine/step/condition_watch.h"
#include "engine/step/step_context.h"

namespace stepscope {

class NumberJudge {
 public:
  NumberJudge(const StepContext& context, const SymbolicStep& step) : context_(context), step_(step) {}

  void begin();  // a step
  // After an instruction, when the context's watched values have been looked at. `fullSpeed`: nobody walks, so every value
  // is looked at where that is wanted.
  void after(const Executor& executor, int instruction, bool fullSpeed);
  // Before a collective begins while the backward pass runs, which may write over the gradients that it sends.
  void beforeExchange(const Executor& executor, int instruction);
  // Between backward pass and update: all gradients are there, and no parameter has changed. All of them are read where the
  // step is to stop, and in a step that is walked: its time is not judged.
  void judge(const Executor& executor, bool walked = false);

  // Conditions on values, where full speed stops at them: looked at with after().
  ConditionWatch& conditions() { return conditions_; }
  const ConditionWatch& conditions() const { return conditions_; }

  const std::string& found() const { return found_; }  // what it was ("loss is NaN"); empty: none
  // Neither loss nor gradients hold it, only some value on the way: the walk may find that it was to be expected.
  bool ofValue() const { return ofValue_; }
  std::optional<double> norm() const { return norm_; }  // of the gradients of the step, where they were read

  // Of a walk (breakpoint.h). What is expected is what it came across from the start of the step.
  KnownNumbers& known() { return known_; }
  void expectNone(std::size_t values) { known_.forget(values); }
  void walksBack() { known_.told.assign(known_.told.size(), false); }  // what stopped it stops it again
  // Those that the walk has just explained are not looked at again at full speed.
  void excuseInfinities();

 private:
  void lookAtOutputs(const Executor& executor, int instruction);
  void lookAtWatched(const Executor& executor, int instruction);
  bool readsGradients(const ExecutionPlan& plan, bool walked = false) const;
  bool fewGradients(const ExecutionPlan& plan) const;

  const StepContext& context_;
  const SymbolicStep& step_;
  ConditionWatch conditions_;
  std::string found_;
  bool ofValue_ = false;
  std::optional<double> norm_;
  std::map<ValueId, double> squares_;  // of gradients that were sent
  std::vector<bool> excused_;          // by value id
  KnownNumbers known_;
};

}  // namespace stepscope
