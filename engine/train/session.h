// A training session: one imported model, its options, the plans that the builder made, and the state that training changes.
//
// It decides which batch comes next, which plan runs it, when options take effect, what can be gone back to. Values of the
// step are looked at through stepper() (engine/step/values.h). All functions but cancel() belong to one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/build/trained_set.h"
#include "engine/lab/recompute_history.h"
#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/lab.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/precision.pb.h"
#include "engine/snapshot/worker.pb.h"
#include "engine/state/state_ring.h"
#include "engine/step/pointed_places.h"
#include "engine/step/step_context.h"
#include "engine/train/data.h"

namespace stepscope {

struct FirstCause;
struct Golden;
struct GoldenReport;
class WeightWatch;

class Session {
 public:
  ~Session();
  // Phases load, check, inline, infer. On failure `problems` has every finding, and the error the first. `registry`: what
  // ops, kernels, passes and options the session knows.
  static Result<std::unique_ptr<Session>> open(const std::filesystem::path& path, const LoadOptions& load, Observer observer,
                                               std::vector<Problem>* problems = nullptr,
                                               std::shared_ptr<const Registry> registry = Registry::builtIn());
  const Registry& registry() const { return *model_->registry; }

  // --- what the file is
  snapshot::ModelInfo inspect() const;
  const Graph& imported() const { return model_->graph; }

  // --- options. Before the build they take effect with it; after it applyOptions() takes them. What decides only how a step
  // is run is taken at once; other settings wait for a begun step to end. Parameters, optimizer and random state are kept.
  const TrainOptions& options() const { return pending_ ? *pending_ : options_; }
  Status setOptions(TrainOptions options);
  // Between steps the coming step runs under both plans to compare what they leave. A begun step is replayed under the new
  // plan to the same place, with its edits, and compared there. On an error options, plan and place stay as they were.
  Status applyOptions();
  bool optionsWait() const { return pending_.has_value(); }
  const snapshot::OptionProof* optionProof() const { return proof_ ? &*proof_ : nullptr; }  // of the last change
  std::vector<snapshot::Option> optionList() const;

  // --- building. Phases attach loss … bind, for the batch of the next step; state carries over by name.
  Status build();
  Status buildForward(const std::vector<std::string>& fetch);  // without loss, gradient and optimizer (`stepscope run`)
  void keep(std::vector<std::string> names) { keep_ = std::move(names); }  // before build: values kept until the step ends
  void keepGradients(bool on) { keepGradients_ = on; }                     // before build: gradients of trained parameters
  Status pin(ValueId id, bool pinned);                                     // keeps its memory; builds again
  // Batches from here instead of where the options say, until options change; they fit the graph as those of openData() do.
  void feedFrom(std::unique_ptr<DataSource> data) { data_ = std::move(data); }
  // Batches of the source that `open` makes for the inputs of a build's graph, instead of where the options say, in this
  // and every later build. Errors are those of `open`.
  using OpenSource = std::function<Result<std::unique_ptr<DataSource>>(const Graph& graph)>;
  Status feedWith(OpenSource open);
  bool built() const { return running_ != nullptr; }
  // Times that phases ran to make a plan, which of them made the one that runs, and for what batches.
  std::size_t builds() const { return context_.log.builds(); }
  std::size_t runningBuild() const;
  std::string runningSignature() const;
  std::vector<snapshot::PhaseSpan> phasesOf(std::size_t build) const { return context_.log.spansOf(build); }
  const std::vector<snapshot::PhaseSpan>& phases() const { return context_.log.spans(); }
  const std::vector<snapshot::Alert>& alerts() const { return context_.log.alerts(); }
  const std::vector<Stage>& stages() const { return stages_; }
  const std::vector<ParameterChoice>& parameters() const { return parameters_; }
  Result<snapshot::Graph> graphSnapshot(const std::string& phase) const;  // kept at a phase boundary; the newest for ""
  Result<snapshot::Plan> planSnapshot() const;
  std::vector<snapshot::Determinism> determinism() const;
  // What may be computed again, judged on the plan that runs. kCancelled after cancel().
  Result<snapshot::RecomputeReport> recomputeReport(const std::optional<RecomputeQuestion>& question);

  // The coming step, or the begun one from its start and without edits, in a low precision next to float32
  // (engine/lab/precision_study.h). State, plan and place stay as they are. kCancelled after cancel().
  Result<snapshot::PrecisionReport> precisionStudy(const snapshot::GetPrecision& question);

  // What fits into a memory: plans of the step under the present options for many extents of a dimension
  // (engine/lab/capacity.h). Nothing has to be built, nothing runs, and no weights are needed: the model may be opened
  // without them. Extents that nobody sets are those of the data; without data as of synthetic data.
  // Where a dimension varies, as many labels count as in synthetic data (option padding). Errors: kNotFound for a
  // dimension that no input has, kInvalidArgument for a range that is empty, those of building. kCancelled after cancel().
  Result<snapshot::CapacityReport> capacity(const snapshot::GetCapacity& question);

  // The coming step, or the begun one from its start, next to the same step with every option changed in turn
  // (engine/lab/trials.h). State, plan and place stay as they are. cancel() ends it with what was measured. `tried`: told of
  // each as soon as it is measured, without its verdict.
  Result<snapshot::TrialsReport> trials(const snapshot::GetTrials& question,
                                        std::function<void(const snapshot::Trial&)> tried = {});
  // The first batch of the data next to what PyTorch computed of it (engine/lab/golden_check.h), from the state as it is
  // now; of `batches` batches the losses, as far as the golden has them. State, plan and place stay as they are. kCancelled
  // after cancel().
  Result<GoldenReport> compareWithGolden(const Golden& golden, std::int64_t batches = 1);

  // --- running. One micro step at full speed; commits at its end. A begun step is finished instead. The first number of a
  // run that is not finite is an alert that names its cause; where the run is to stop at it (option break-on, or
  // stopOnNumbers()), the error is kCancelled, stoppedBy() says why, and the step stands behind the instruction that made
  // it.
  Result<snapshot::StepRecord> step();
  Status step(snapshot::StepRecord& record);  // the same; memory of an earlier step's record is used again
  std::int64_t nextStep() const { return context_.state.counters.step; }
  // Full speed stops at what the NaN and Inf breakpoints stop at, whatever break-on says.
  // `everywhere`: in any value of forward and backward pass.
  void stopOnNumbers(bool on, bool everywhere = false) {
    stopOnNumbers_ = on;
    everywhere_ = on && everywhere;
  }
  // The first loss or gradient that is not finite is traced to where it came from (engine/lab/first_cause.h): its alert says
  // so, and firstCause() has it. Gradients are looked at in every step, and parameters after it. `stop`: the step is taken
  // back and the run ends there, as with option break-on.
  void blameNumbers(bool stop);
  const FirstCause* firstCause() const { return cause_.get(); }
  const std::string& stoppedBy() const { return stoppedBy_; }  // of the newest step(); empty: no number
  // From any thread: ends what runs now, or else what runs next, at an instruction's boundary; clearCancel() takes it back.
  void cancel() { context_.cancelled = true; }
  void clearCancel() { context_.cancelled = false; }
  // --- stepping through one micro step; what needs a begun step begins one
  Status beginStep();                                      // at instruction 0; an already begun step is thrown away
  Result<snapshot::Position> stepInstructions(int count);  // negative = back
  Result<snapshot::Position> runTo(int instruction);
  Result<snapshot::Position> runToBreak(bool backwards);
  Result<snapshot::Position> stepPhase(bool backwards);
  Result<snapshot::StepRecord> finishStep();  // runs what is left and commits; cancelled, it stays where it came to
  Status abandonStep();
  snapshot::Position position() const;
  std::int64_t replayedInstructions() const { return context_.replayed; }  // to go back, since the session began
  Status setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints);
  const std::vector<snapshot::Breakpoint>& breakpoints() const { return context_.breakpoints; }
  void watch(std::vector<ValueId> values);
  std::vector<std::int64_t> ring() const { return ring_.steps(); }  // micro steps to whose start rewind() can go
  Status rewind(std::int64_t step);
  // Runs the coming micro step twice from one state and compares every value that the plan keeps; commits nothing.
  Result<snapshot::CompareReply> compareBits();
  // --- the plan that runs; only after a build, and until the next call that builds or takes another batch
  Stepper& stepper() const;
  ValueId findValue(std::string_view name) const;  // by name, in the graph that runs
  const Graph& runningGraph() const;               // the imported one before the build
  ValueId lossValue() const;
  // --- state
  Result<Tensor> gradient(
      const std::string& parameter) const;  // as accumulated, without loss scale and clipping; after the last step
  std::map<std::string, TensorView> namedState(bool optimizer) const;
  Status saveState(const std::filesystem::path& path) const;  // safetensors: parameters, optimizer state, counters
  // Parameters; with `resume` also optimizer state and counters. What the file lacks is a warning.
  Status loadState(const std::filesystem::path& path, bool resume);

 private:
  struct Running;  // a plan with its stepper
  explicit Session(Observer observer);
  const std::vector<DimChoice>& dimensions() const;
  BuildRequest buildRequest(const TrainOptions& options);
  Status makePlans(BuildRequest request);
  Status goOnUnder(BuildRequest request, snapshot::OptionProof& proof);
  Result<std::unique_ptr<Running>> makeRunning(std::shared_ptr<const SymbolicStep> step, const Signature& signature,
                                               std::string why);
  void show(Running& running);
  Status useVariantFor(const Batch& batch);
  Status openAgain(std::int64_t loopIterations);
  void takePending();
  bool inStep() const;
  StateSnapshot startOfStep() const;  // of the begun step, or the coming one
  Status ensureStep();
  void stepDone();
  NumberWatch numbersToWatch() const;
  Status lookForNumber(snapshot::StepRecord& record);
  Status findCause();
  void lookAtWeights();
  Result<snapshot::Position> tellOfNumber(Result<snapshot::Position> stop);
  void tellWhatTheFileLacks();
  Tensor withoutLossScale(Tensor gradient) const;
  void tellOfIdlePredicates();

  StepContext context_;
  std::shared_ptr<const ImportedModel> model_;
  TrainOptions options_;
  std::optional<TrainOptions> pending_;  // wait for a step boundary
  std::optional<snapshot::OptionProof> proof_;
  std::unique_ptr<DataSource> data_;  // null: not opened yet, or options changed
  OpenSource openSource_;             // null: the options say where batches come from
  mutable std::optional<std::pair<std::map<std::string, std::int64_t>, std::vector<DimChoice>>> dimensions_;  // given, open
  bool stopOnNumbers_ = false, everywhere_ = false, toldOfNumbers_ = false;
  std::string stoppedBy_;
  std::unique_ptr<WeightWatch> weightWatch_;  // null: numbers are not blamed
  bool blameStops_ = false;
  std::unique_ptr<FirstCause> cause_;
  std::vector<std::string> keep_;
  bool keepGradients_ = false;
  std::set<ValueKey> pinned_;
  PointedPlaces pointed_;                           // breakpoints and watches, for every plan
  std::optional<std::pair<PlaceKey, int>> anchor_;  // where the person stopped, and which position that is in this plan
  std::shared_ptr<const SymbolicStep> step_;        // of the newest build
  std::vector<std::unique_ptr<Running>> variants_;  // its plans, one for each signature
  Running* running_ = nullptr;
  std::vector<Stage> stages_, symbolicStages_;  // that can be looked at; those before a batch binds extents
  std::vector<ParameterChoice> parameters_;
  StateRing ring_;
  bool ringWanted_ = false;                                                // copies cost time; only stepping asks for them
  std::optional<std::pair<std::string, std::set<std::string>>> fromFile_;  // a state file and its names, not compared yet
  bool optimizerFromFile_ = false;                                         // its optimizer state was asked for
  RecomputeHistory recomputeHistory_;
};

}  // namespace stepscope
