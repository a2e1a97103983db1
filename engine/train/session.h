// A training session: one imported model, its options, the plans that the builder made, and the state that training changes.
//
// It joins the parts: which batch comes next, which plan runs it, when options take effect, what can be gone back to. Values
// of the step: stepper() (engine/step/values.h). All functions but cancel() belong to one thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/ir/place_key.h"
#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/state/state_ring.h"
#include "engine/train/batch_feed.h"
#include "engine/train/laboratory.h"
#include "engine/train/number_guard.h"
#include "engine/train/plan_set.h"
#include "engine/train/trained_state.h"

namespace stepscope {

class ModelFunction;
struct FunctionRequest;

class Session {
 public:
  // Phases load, check, inline, infer. On failure `problems` has every finding, and the error the first.
  static Result<std::unique_ptr<Session>> open(const std::filesystem::path& path, const LoadOptions& load, Observer observer,
                                               std::vector<Problem>* problems = nullptr,
                                               std::shared_ptr<const Registry> registry = Registry::builtIn());
  const Registry& registry() const { return *plans_.model()->registry; }
  snapshot::ModelInfo inspect() const;  // what the file is
  const Graph& imported() const { return plans_.model()->graph; }

  // --- options. Before the build they take effect with it; after it applyOptions() takes them. What decides only how a step
  // is run is taken at once; other settings wait for a begun step to end. Parameters, optimizer and random state are kept.
  const TrainOptions& options() const { return pending_ ? *pending_ : options_; }
  Status setOptions(TrainOptions options);
  // Between steps the coming step runs under both plans to compare what they leave. A begun step is replayed under the new
  // plan to the same place, with its edits, and compared there. On an error options, plan and place stay as they were.
  // A begun step goes on likewise where the file of a plugin has changed, which build() takes too. Errors: those of
  // PlanSet::underChangedPlugins().
  Status applyOptions();
  bool optionsWait() const { return pending_.has_value(); }
  const snapshot::OptionProof* optionProof() const { return proof_ ? &*proof_ : nullptr; }  // of the last change
  std::vector<snapshot::Option> optionList() const;

  // --- building. Phases attach loss … bind, for the next batch; state carries over by name; cancelled: no change
  Status build();
  Status buildForward(const std::vector<std::string>& fetch);  // without loss, gradient and optimizer (`stepscope run`)
  // The model as a function with a backward pass, with this session's options, parameters and statistics (model_function.h).
  std::unique_ptr<ModelFunction> function(FunctionRequest request);
  void keep(std::vector<std::string> names) { asked_.keep = std::move(names); }  // before build: until the step ends
  void keepGradients(bool on) { asked_.keepGradients = on; }  // before build: gradients of trained parameters
  // Before the build: the processes that train with this one. They stay the caller's. Rank r takes entry k · N + r of the
  // data at micro step k; gradients are averaged. Every call that runs or builds is then one of all ranks.
  void joinRanks(Ranks& ranks);
  Status pin(ValueId id, bool pinned);  // keeps its memory; builds again
  // Batches from here instead of where the options say, until options change; they fit the graph as those of openData() do.
  void feedFrom(std::unique_ptr<DataSource> data) { feed_.take(std::move(data)); }
  Status feedWith(BatchFeed::Open open);  // in this and every later build. Errors are those of `open`.
  bool built() const { return plans_.made(); }
  // Phases and alerts of every build; which build made the plan that runs, and for what batches.
  const BuildLog& log() const { return context_.log; }
  const std::vector<snapshot::PhaseSpan>& phases() const { return log().spans(); }
  const std::vector<snapshot::Alert>& alerts() const { return log().alerts(); }
  const PlanSet& plans() const { return plans_; }                         // the graphs that led to them, what they train
  Result<snapshot::Graph> graphSnapshot(const std::string& phase) const;  // kept at a phase boundary; the newest for ""
  Result<snapshot::Plan> planSnapshot() const;
  std::vector<snapshot::Determinism> determinism() const;

  // --- running. One micro step at full speed; commits at its end. A begun step is finished instead. The first number of a
  // run that is not finite is an alert that names its cause; where the run is to stop at it (option break-on, or numbers()),
  // the error is kCancelled, and the step stands behind the instruction that made it.
  Result<snapshot::StepRecord> step();
  Status step(snapshot::StepRecord& record, bool more = false);  // in memory of an earlier record; another step follows
  std::int64_t nextStep() const { return counters().step; }
  const StateCounters& counters() const { return context_.state.counters; }  // where the run is
  NumberGuard& numbers() { return numbers_; }
  Laboratory& lab() { return lab_; }
  // From any thread: ends what runs now, or else what runs next, at an instruction's boundary; clearCancel() takes it back.
  void cancel() { context_.cancelled = true; }
  void clearCancel() { context_.cancelled = false; }

  // --- stepping through one micro step; what needs a begun step begins one
  Status beginStep();                                      // at instruction 0; an already begun step is thrown away
  Result<snapshot::Position> stepInstructions(int count);  // negative = back
  Result<snapshot::Position> runTo(int instruction);
  Result<snapshot::Position> runToBreak(bool backwards);
  Result<snapshot::Position> stepPhase(bool backwards);
  Result<snapshot::StepRecord> finishStep() { return step(); }  // what is left; cancelled, it stays where it came to
  Status abandonStep();
  snapshot::Position position() const;
  std::int64_t replayedInstructions() const { return context_.replayed; }  // to go back, since the session began
  Status setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints);
  const std::vector<snapshot::Breakpoint>& breakpoints() const { return context_.breakpoints; }
  void watch(const std::vector<ValueId>& values);  // statistics: the newest with position(), all in the records of steps
  std::vector<std::int64_t> ring() const { return ring_.steps(); }  // micro steps to whose start rewind() can go
  Status rewind(std::int64_t step);
  // Runs the coming micro step twice from one state and compares every value that the plan keeps; commits nothing.
  Result<snapshot::CompareReply> compareBits();

  // --- the plan that runs; only after a build, and until the next call that builds or takes another batch
  Stepper& stepper() const { return plans_.stepper(); }
  const Graph& runningGraph() const { return plans_.graph(); }  // the imported one before the build
  ValueId findValue(std::string_view name) const { return runningGraph().findValue(name); }
  ValueId lossValue() const { return plans_.step() ? plans_.step()->loss : ValueId{}; }

  // --- what training changes
  TrainedState& trained() { return trained_; }
  const TrainedState& trained() const { return trained_; }
  // What the coming update multiplies by for parameters that have no rate of their own: option `lr` by the schedule. Setting
  // takes the place of the option, without a build. Error: a number below 0, or none.
  double learningRate() const;
  Status setLearningRate(double base);

 private:
  explicit Session(Observer observer);
  BuildRequest buildRequest(const TrainOptions& options);
  Status buildAsAsked();
  Status makePlans(BuildRequest request);
  Status goOnUnder(BuildRequest request, snapshot::OptionProof& proof);
  Status openAgain(std::int64_t loopIterations);
  void takePending();
  Status needsBuild(std::string_view what) const;
  bool inStep() const { return built() && stepper().inStep(); }
  Status ensureStep() { return inStep() ? Status{} : beginStep(); }
  Result<Batch> fittingBatch();

  StepContext context_;
  PlanSet plans_;
  BatchFeed feed_;
  NumberGuard numbers_;
  Laboratory lab_;
  TrainOptions options_;
  std::optional<TrainOptions> pending_;  // wait for a step boundary
  std::optional<snapshot::OptionProof> proof_;
  BuildRequest asked_;                              // keep, keepGradients and pinned of every build
  std::optional<std::pair<PlaceKey, int>> anchor_;  // where the person stopped, and which position that is in this plan
  StateRing ring_;
  bool ringWanted_ = false;  // copies cost time; only stepping asks for them
  TrainedState trained_;
};

}  // namespace stepscope
