// One plan and one state: runs micro steps at full speed or instruction by instruction, both ways.
//
// bind() makes the kernels and finds the memory (phase bind). A micro step begins with a batch; what its instructions write
// over is kept by the state until the step is committed or thrown away. Going back is undone where the undo log reaches,
// else the step is replayed from its start: the same batch, the same random keys, the edits of the user. Values are read and
// written through the stepper alone. Not thread-safe; StepContext::cancelled may be set from any thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/build/builder.h"
#include "engine/exec/executor.h"
#include "engine/ir/key_index.h"
#include "engine/profile/roofline.h"
#include "engine/profile/step_times.h"
#include "engine/state/undo_log.h"
#include "engine/step/number_judge.h"
#include "engine/step/rank_collectives.h"
#include "engine/step/step_context.h"
#include "engine/step/step_edit.h"
#include "engine/step/step_watchers.h"

namespace stepscope {

class Stepper {
 public:
  // Phase bind. Kernels are made first; `takesMemory` is called before state and memory of another stepper of this context
  // are touched. Errors, with the state as it was: no kernel, no memory, an extent that is not a number; kCancelled.
  static Result<std::unique_ptr<Stepper>> bind(std::shared_ptr<const Variant> variant, StepContext& context,
                                               const Cancel& cancel = {}, const std::function<void()>& takesMemory = {});
  ~Stepper();

  const Variant& variant() const { return *variant_; }
  const std::shared_ptr<const Variant>& sharedVariant() const { return variant_; }
  const SymbolicStep& step() const { return *variant_->step; }
  const Graph& graph() const { return variant_->graph; }
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }
  const ExecutionPlan& plan() const { return executor_->plan(); }
  const KeyIndex& keys() const;                                                   // of graph(), made when it is asked for
  const std::map<std::string, std::string>& effects() const { return effects_; }  // of the options, in this plan
  const cpu::MachinePeak* peak() const { return peak_; }  // of this machine, where the option roofline asks for it
  const StepTimes& times() const { return times_; }
  const std::vector<Span>& lastSpans() const { return lastSpans_; }  // of the newest step, as far as it ran
  std::int64_t touchedBytes() const { return touched_; }
  void forgetTouchedBytes() { touched_ = 0; }  // they are measured anew with the next step

  // --- one micro step at full speed; commits at its end. The record's memory is used again. numbers(): what was found.
  // False: because of it the state was put back; not so where a rank has parts of parameters.
  Result<bool> run(Batch batch, snapshot::StepRecord& record);
  const NumberJudge& numbers() const { return judge_; }
  void excuseInfinities() { judge_.excuseInfinities(); }  // that the walk through a step has just explained
  Result<StepOutcome> trial(const Batch& batch);          // runs the step and puts the state back

  // --- one micro step by hand
  Status begin(Batch batch);  // at instruction 0
  bool inStep() const { return inStep_; }
  int count() const { return static_cast<int>(plan().instructions.size()); }
  int next() const { return position_; }              // the instruction that would run next
  Result<snapshot::Position> runTo(int instruction);  // either way
  Result<snapshot::Position> runToBreak(bool backwards);
  Result<snapshot::Position> stepPhase(bool backwards);
  Status finish(snapshot::StepRecord& record);  // the rest, and commits; cancelled before the update, it stays there
  void abandon();                               // throws the begun step away
  void giveWay(bool memory);         // takes it back, for a plan that may not come to be; its memory is given up with it
  Status comeBack();                 // after giveWay(): memory and place as they were, whatever is cancelled meanwhile
  void leave() { inStep_ = false; }  // another plan went on with the step
  snapshot::Position position() const;
  // The step whose numbers value() gives: between two steps those of the one before.
  std::int64_t shownStep() const { return context_.state.counters.step - (inStep_ ? 0 : 1); }
  const Batch& batch() const { return batch_; }

  // --- values. What is not there now is an error that says why.
  Result<TensorView> value(ValueId id) const;  // valid until the next call that runs something
  // False for batch and computed values when the memory has those of a step that was taken back, a trial, another plan.
  bool holds(ValueId id) const;
  Status write(ValueId id, const TensorView& contents);  // an edit: it is replayed when the step is
  const std::vector<StepEdit>& edits() const { return edits_; }
  void noteWatched();  // statistics of the watched values that are in memory; later ones are taken as they are computed
  // Begins the step of `other` anew under this plan: its batch, its edits as far as they have a value here, up to
  // `instruction`. The state is that of the step's start; `other` has lost what it wrote there and can only replay().
  Result<snapshot::Position> takeOver(const Stepper& other, std::vector<StepEdit> edits, int instruction);
  Result<snapshot::Position> replay(int instruction);  // runs the step from its start to there again, with its edits

  // --- for those who run the plan themselves
  Status feed(const Batch& batch);
  Executor::RunOptions runOptions() const;
  void standBefore(int instruction);  // where they came to: value() gives what is there then

 private:
  Stepper(std::shared_ptr<const Variant> variant, StepContext& context) : variant_(std::move(variant)), context_(context) {}
  const TrainOptions& options() const { return step().request.options; }
  Status makeExecutor(const Cancel& cancel = {}, const std::function<void()>& takesMemory = {});
  Status takeMemory(BuildLog::Scope& phase, std::int64_t kernelBytes, const Cancel& cancel);
  bool countsFirstBatch() const;
  Status countFirstBatchOnce();
  Status beforeCommits();
  bool changesCommits() const;
  Status joinStatistics();
  Status commit(snapshot::StepRecord& record);
  Status findLossScale(const Batch& batch);
  bool roundEnds() const;  // whether this micro step updates: the last one of a round of accumulation
  bool skipsUpdate() const;
  Status saveBeforeWrite(int instruction, bool undoable);
  Status applyEdits(int instruction);
  Status writeValue(ValueId id, const TensorView& contents);
  Result<snapshot::Position> runRange(int end, bool breaks, bool commits = false);
  Result<snapshot::Position> replayTo(int instruction);
  void beginNotes();
  void noteAfter(int instruction);
  bool followsNumbers() const;
  void keepState(int end);
  void fillRecord(snapshot::StepRecord& record, std::int64_t begin, std::int64_t end);
  std::shared_ptr<const Variant> variant_;
  StepContext& context_;
  std::unique_ptr<Executor> executor_;
  mutable std::unique_ptr<KeyIndex> keys_;
  std::map<std::string, std::string> effects_;
  const cpu::MachinePeak* peak_ = nullptr;
  std::shared_ptr<const MomentAges> agreed_;  // whose states have had equally many updates for each input
  bool vanished_ = false;                     // every gradient of the last update was zero at a loss scale below 1
  std::set<std::string> lowCopies_;           // of parameters, that the plan reads and writes
  StepTimes times_;
  std::optional<Error> doesNotFit_;  // with what binding takes: why no step may run
  // Bytes of the arena, 0: not measured yet; of state, constants and batch, measured when the arena is.
  std::int64_t touched_ = 0, touchedPersistent_ = 0;
  bool stepped_ = false, timed_ = false;  // a step was committed; its first one has named what cancelling waits for
  bool inStep_ = false, gaveWay_ = false;
  int position_ = 0;
  std::int64_t place_ = -1;  // of StepContext::places, when the newest batch was fed
  Batch batch_;
  UndoLog undo_;
  std::vector<std::span<std::byte>> written_;  // of one instruction; kept to spare allocations
  std::vector<StepEdit> edits_;
  std::string stoppedBy_;
  int stoppedAt_ = 0;  // id of the breakpoint
  std::vector<Span> lastSpans_;
  RankCollectives collectives_{context_};
  StepWatchers watchers_{context_, *variant_->step};
  NumberJudge judge_{context_, *variant_->step};
  std::int64_t stepBegin_ = 0, lastNs_ = 0;             // nanoseconds; the time of the newest step at full speed
  std::map<int, std::vector<std::string>> stateBelow_;  // names of what the instructions below that one write
};

}  // namespace stepscope
