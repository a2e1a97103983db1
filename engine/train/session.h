// A training session: one model, its options, the built step, and the state that training changes.
//
// The command line uses it in process, `stepscope worker` behind the wire protocol. Phases of DESIGN §3 appear as spans. All
// functions but cancel() belong to one thread. Snapshots are protobuf messages, so that both users show the same facts.
#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/exec/executor.h"
#include "engine/ir/graph.h"
#include "engine/onnx/reader.h"
#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/recompute.pb.h"
#include "engine/snapshot/run.pb.h"
#include "engine/snapshot/tensor.pb.h"
#include "engine/snapshot/worker.pb.h"
#include "engine/train/data.h"
#include "engine/train/density.h"
#include "engine/train/optimizer.h"
#include "engine/train/options.h"
#include "engine/train/recompute_analysis.h"
#include "engine/train/session_edit.h"
#include "engine/train/state.h"
#include "engine/train/step_notes.h"
#include "engine/train/step_times.h"
#include "engine/train/trained_set.h"
#include "engine/train/undo_log.h"

namespace stepscope {

namespace cpu {
struct MachinePeak;
}

// Told about what happens while a call runs. Calls come on the session's thread; all are optional.
struct Observer {
  std::function<void(const snapshot::PhaseSpan&)> phase;  // a phase or a child of it has ended
  std::function<void(const snapshot::Alert&)> alert;
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;
};

// A graph kept at a phase boundary.
struct Stage {
  std::string phase;
  std::shared_ptr<const Graph> graph;
};

// One variant: the specialised graph and its executor for one signature of input shapes.
struct Variant {
  std::string signature, reason;
  std::map<std::string, std::pair<DType, Dims>> arrays;  // the same as `signature`, to compare with
  Graph graph;
  std::unique_ptr<Inference> inference;
  std::unique_ptr<Executor> executor;
  const cpu::MachinePeak* peak = nullptr;  // of this machine, where the option roofline asks for it
  bool stepped = false;                    // a step of it was committed
  bool timed = false;                      // its first step has named the instructions that cancelling waits for
  std::optional<NotePlan> notes;           // what a step may note of its values
  // State whose next version has memory of its own: copied when the step is committed.
  struct Copied {
    StateUpdate update;
    std::span<std::byte> from, to;  // where both lie for good; empty where that is not known before the step
    bool byOptimizer = false;
  };
  std::vector<Copied> copied;
  std::shared_ptr<const Graph> specialised;    // before phase recompute
  std::shared_ptr<const Graph> recomputed;     // after it; null when it changed nothing
  std::map<std::string, std::string> effects;  // of the options, in this plan
  std::size_t build = 0;                       // which of Session::builds() made it
  PlanOptions planOptions;
  std::optional<Error> doesNotFit;  // why no step of it may run
  std::int64_t livePeak = 0;        // largest sum of live bytes, without workspaces
  StepTimes times;
  std::unique_ptr<RecomputeAnalysis> analysis;  // made when it is asked for
};

// What a report about recompute may be asked: what this plan with this budget (0 = none) would give.
struct RecomputeQuestion {
  std::vector<RecomputeRequest> plan;
  std::int64_t budget = 0;
};

class Session {
 public:
  ~Session();

  // Phases load, check, inline, infer. On failure `problems` has every finding, and the error the first.
  static Result<std::unique_ptr<Session>> open(const std::filesystem::path& path, const LoadOptions& load, Observer observer,
                                               std::vector<Problem>* problems = nullptr);

  // --- what the file is
  snapshot::ModelInfo inspect() const;
  // Extents in synthetic data of the inputs' symbols that the options leave open, found once for each choice of them.
  const std::vector<DimChoice>& dimensions() const;
  const Graph& imported() const { return imported_; }

  // --- options. Before the build they take effect with it; after it at the next step boundary, which keeps parameters,
  // optimizer state and random state: applyOptions() does it at once when no step has begun, and beginning a step does it
  // otherwise.
  const TrainOptions& options() const { return pending_ ? *pending_ : options_; }
  Status setOptions(TrainOptions options);
  // Builds again with the options that wait, and runs the coming step under the old and the new plan from one state to
  // compare what they leave behind; it commits nothing. When the build fails, the old options and plan are back, and the
  // error says why.
  Status applyOptions();
  // Of the last change that was applied; nullptr before one.
  const snapshot::OptionProof* optionProof() const { return optionProof_ ? &*optionProof_ : nullptr; }
  std::vector<snapshot::Option> optionList() const;

  // Phases attach loss … bind, for the batch of the next step. Build again after options changed: state carries over by
  // name.
  Status build();
  // The same without loss, gradient and optimizer: forward only (`stepscope run`).
  Status buildForward(const std::vector<std::string>& fetch);
  bool built() const { return variant_ != nullptr; }
  // Batches from here instead of where the options say, until options change; they fit the graph as those of openData() do.
  void feedFrom(std::unique_ptr<DataSource> data) { data_ = std::move(data); }
  const std::vector<snapshot::PhaseSpan>& phases() const { return spans_; }
  // How many times phases ran to make a plan: the first build with what reading the file took, then one for each change of
  // options and each batch with other shapes. A build that failed before anything was built counts with the next attempt.
  std::size_t builds() const { return builds_.size(); }
  // The one that made the plan which runs: not the newest when a batch has the shapes of an earlier one again.
  std::size_t runningBuild() const { return variant_ ? variant_->build : builds_.empty() ? 0 : builds_.size() - 1; }
  std::string runningSignature() const { return variant_ ? variant_->signature : std::string(); }
  std::vector<snapshot::PhaseSpan> phasesOf(std::size_t build) const;  // below builds(); parents count within it
  const std::vector<Stage>& stages() const { return stages_; }
  const std::vector<snapshot::Alert>& alerts() const { return alerts_; }
  // The graph kept at a phase boundary; the newest for "".
  Result<snapshot::Graph> graphSnapshot(const std::string& phase) const;
  Result<snapshot::Plan> planSnapshot() const;
  std::vector<snapshot::Determinism> determinism() const;
  // What may be computed again, judged on the variant that runs. kCancelled after cancel().
  Result<snapshot::RecomputeReport> recomputeReport(const std::optional<RecomputeQuestion>& question);
  // What runs the plan of the newest variant, for measurements; null before the build, and only valid until the next call
  // that runs.
  Executor* executor() const { return variant_ ? variant_->executor.get() : nullptr; }
  const std::vector<ParameterChoice>& parameters() const { return parameters_; }

  // --- running. One micro step at full speed; commits at its end.
  Result<snapshot::StepRecord> step();
  Status step(snapshot::StepRecord& record);  // the same; memory of an earlier step's record is used again
  std::int64_t nextStep() const { return state_.step; }
  // From any thread: ends what runs now, or else what runs next, at an instruction's boundary. A step that already writes
  // state is finished first. clearCancel() takes back one that came too late to end anything.
  void cancel() { cancelled_ = true; }
  void clearCancel() { cancelled_ = false; }

  // --- stepping through one micro step
  Status beginStep();  // at instruction 0; an already begun step is thrown away
  // Negative = back: from the undo log where it reaches, else by replay from the start of the step.
  Result<snapshot::Position> stepInstructions(int count);
  Result<snapshot::Position> runTo(int instruction);
  Result<snapshot::Position> runToBreak(bool backwards);
  Result<snapshot::Position> stepPhase(bool backwards);
  Result<snapshot::StepRecord> finishStep();  // runs what is left and commits; cancelled, it stays where it came to
  Status abandonStep();
  snapshot::Position position() const;
  // Instructions that were run again to go back, since the session began.
  std::int64_t replayedInstructions() const { return replayed_; }
  Status setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints);
  const std::vector<snapshot::Breakpoint>& breakpoints() const { return breakpoints_; }
  void watch(std::vector<ValueId> values) { watched_ = std::move(values); }
  std::vector<std::int64_t> ring() const;  // micro steps to whose start rewind() can go
  Status rewind(std::int64_t step);

  // --- values
  ValueId findValue(std::string_view name) const;  // by name, in the graph that runs
  const Graph& runningGraph() const { return variant_ ? variant_->graph : imported_; }
  ValueId lossValue() const { return loss_; }
  std::vector<ValueId> forwardOutputs() const { return runningGraph().outputs(); }
  // `begin` and `extent` select a slice; empty = everything, cut to `limit` elements.
  Result<snapshot::TensorData> fetch(ValueId id, const std::vector<std::int64_t>& begin,
                                     const std::vector<std::int64_t>& extent, bool statistics, std::int64_t limit) const;
  Result<TensorView> value(ValueId id) const;  // valid until the next call that runs something
  Status edit(ValueId id, const std::vector<std::int64_t>& index, double number, bool fill);
  Status editData(ValueId id, const TensorView& data);
  // The contents of a .npy file of the value's shape, in its type or one that loses nothing.
  Status editFromFile(ValueId id, const std::filesystem::path& path);
  // `id` beside a .npy file or another value of its shape, whole, by the rule of engine/snapshot/number_rule.h.
  Result<snapshot::ComparisonResult> compareWithFile(ValueId id, const std::filesystem::path& path) const;
  Result<snapshot::ComparisonResult> compareWithValue(ValueId id, ValueId other) const;
  // What each row contributes to the loss, as far as its values are in memory now.
  snapshot::RowLosses rowLosses() const;
  Status pin(ValueId id, bool pinned);  // replans at the next step boundary; a barrier to passes
  void keep(std::vector<std::string> names) {
    keep_ = std::move(names);
  }                                                     // before build: values to keep until the end of the step
  void keepGradients(bool on) { keepGradients_ = on; }  // before build: gradients of trained parameters likewise
  // Runs the coming micro step twice from one state and compares every value that the plan keeps; commits nothing.
  Result<snapshot::CompareReply> compareBits();

  // --- state
  Result<Tensor> gradient(const std::string& parameter) const;  // as accumulated, before clipping; after the last step
  std::map<std::string, TensorView> namedState(bool optimizer) const;
  Status saveState(const std::filesystem::path& path) const;  // safetensors: parameters, optimizer state, counters
  // Parameters; with `resume` also optimizer state and counters. What the file lacks is a warning, at the next build or at
  // once.
  Status loadState(const std::filesystem::path& path, bool resume);

 private:
  explicit Session(Observer observer);
  class PhaseScope;
  Status loadPhases(const std::filesystem::path& path, const LoadOptions& load, std::vector<Problem>* problems);
  Error withDimHint(Error error) const;  // what did not fit may be the synthetic data
  Status materialise();
  void tellWhatTheFileLacks();
  Status buildGraph();
  // What passes are told, and one span with its report for each.
  struct PassContext passContext(Inference& inference) const;
  Status runPhasePasses(const struct PassList& list, Graph& graph, struct PassContext& context);
  Status optimise(std::string_view phase, Graph& graph, Inference& inference);
  Status chooseRecompute(Graph& graph, Inference& inference, const PlanOptions& planOptions);
  Result<std::unique_ptr<Variant>> specialise(const Batch& batch, std::string reason);
  void dropVariants();
  void runVariant(Variant& variant);
  Status useVariantFor(const Batch& batch);
  void keepStage(std::string phase, const Graph& graph);
  void raise(snapshot::Alert alert);
  Status feed(const Batch& batch);
  Executor::RunOptions runOptions() const;
  Status saveBeforeWrite(int instruction, bool undoable);
  Result<snapshot::Position> runRange(int end, bool breaks, bool undoable = true);
  Result<snapshot::Position> replayTo(int instruction);
  Status restoreStepStart();
  Status applyEdits(int instruction);
  Status writeValue(ValueId id, const TensorView& contents);
  Result<Tensor> editable(ValueId id) const;
  void takePending();
  struct StepOutcome {
    double loss = 0, ns = 0;
    StateSnapshot state;
  };
  Result<StepOutcome> trialStep(const StateSnapshot& start);
  static void compareOutcomes(const StepOutcome& before, const StepOutcome& after, snapshot::OptionProof& proof);
  // The steps that ran under one choice of recompute. `settings`: all other options.
  struct PlanRun {
    std::string signature, settings, plan;
    std::int64_t budget = 0, peakBytes = 0, arenaBytes = 0, build = 0;
    StepTimes times;
  };
  static constexpr std::size_t kMostPlanRuns = 64;
  bool sameChoice(const PlanRun& run) const;
  void rememberTimes();
  NodeTimes nodeTimes() const;
  void writeNextState(bool updated, bool counted);
  Status commit();
  bool traceCountedFirstBatch() const;
  void remember();
  void nameLongInstructions(const std::vector<Span>& spans);
  void beginNotes();
  void noteAfter(int instruction);
  void tellOfIdlePredicates();
  void fillRecord(snapshot::StepRecord& record, std::int64_t begin, std::int64_t end) const;

  Observer observer_;
  std::filesystem::path path_;
  LoadedModel model_;  // graph moved out
  Graph imported_;     // after infer: where every build starts
  std::unique_ptr<Inference> importedInference_;
  TrainOptions options_;
  std::optional<TrainOptions> pending_;  // wait for a step boundary
  std::optional<snapshot::OptionProof> optionProof_;
  std::unique_ptr<DataSource> data_;
  struct Dimensions {
    std::map<std::string, std::int64_t> given;
    std::vector<DimChoice> open;
  };
  mutable std::optional<Dimensions> dimensions_;
  DensityProbe density_;  // of the inputs, set by `inspect inputs`
  StepNotes notes_;       // of the running step
  Graph symbolic_;        // after optimizer: where every variant starts
  ValueId loss_;
  OptimizerReport optimizer_;
  std::vector<ValueId> trained_, gradients_;
  std::vector<ParameterChoice> parameters_;
  std::vector<std::string> keep_;
  bool keepGradients_ = false;
  std::set<std::string> pinned_;
  bool forwardOnly_ = false;
  std::vector<std::unique_ptr<Variant>> variants_;
  Variant* variant_ = nullptr;
  std::int64_t build_ = 0;                 // how often build() was called
  std::string builtPlan_, builtSettings_;  // option recompute.plan, and all others but recompute.*, of that build
  std::vector<PlanRun> planRuns_;
  StateStore state_;
  std::vector<snapshot::PhaseSpan> spans_;
  std::vector<int> openSpans_;
  std::vector<std::size_t> builds_;  // the first span of each
  bool everBuilt_ = false;
  std::size_t loadedStages_ = 0;  // stages_ that reading the file left; the others are those of the newest build
  std::vector<Stage> stages_;
  std::vector<snapshot::Alert> alerts_;
  std::set<std::string> alerted_;
  std::map<std::string, std::string> optionEffects_;

  std::atomic<bool> cancelled_ = false;  // set by another thread, taken back by what it ends

  // stepping
  bool inStep_ = false;
  bool resumed_ = false;  // state came from a file that a run wrote
  struct StateFile {
    std::string path;
    std::set<std::string> names;
    bool optimizer = false;  // its optimizer state was asked for
  };
  std::optional<StateFile> fromFile_;  // loaded, and what it lacks not told yet
  int position_ = 0;
  Batch batch_;
  std::vector<std::pair<ValueId, Tensor>> before_;  // state as it was before this step wrote over it
  UndoLog undo_;
  std::vector<std::span<std::byte>> written_;  // of one instruction; kept to spare allocations
  std::int64_t replayed_ = 0;
  std::vector<SessionEdit> edits_;
  std::vector<snapshot::Breakpoint> breakpoints_;
  std::vector<ValueId> watched_;
  std::string stoppedBy_;
  int stoppedAt_ = 0;
  std::vector<Span> lastSpans_;
  std::vector<bool> expectedInf_;  // by value id: infinities explained by infinite constants
  std::deque<StateSnapshot> ring_;
  std::int64_t ringBytes_ = 0;
  bool ringWanted_ = false;  // copies cost time; only stepping asks for them
  std::int64_t stepBegin_ = 0;
  mutable std::int64_t touched_ = 0;
};

}  // namespace stepscope
