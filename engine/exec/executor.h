// Runs an ExecutionPlan: owns the arena, the kernels and the batch's memory; borrows the state.
//
// bind() makes every kernel and finds all memory; after it, run() allocates nothing but what dynamic instructions need.
// Not thread-safe; but any thread may set RunOptions::cancel, which stops before the next instruction.
#pragma once

#include <atomic>
#include <climits>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/exec/step_graphs.h"
#include "engine/plan/plan.h"
#include "engine/plan/reuse.h"
#include "kernels/activity.h"
#include "kernels/device.h"

namespace stepscope {

struct Span {  // of one instruction; nanoseconds of the monotonic clock
  std::int32_t instruction = 0;
  std::int64_t begin = 0, end = 0;
};

// Nanoseconds of the monotonic clock; only differences mean something.
std::int64_t monotonicNs();

// Somebody who is told in the running thread which instruction begins and ends; costs a branch per instruction when null.
class InstructionMarks {
 public:
  virtual ~InstructionMarks() = default;
  virtual void begin(int instruction) = 0;
  virtual void end() = 0;
};

// Who runs nodes that talk to other ranks (SideEffect::kCollective).
class CollectiveRunner {
 public:
  virtual ~CollectiveRunner() = default;
  virtual Status run(const Node& node, const KernelCall& call) = 0;
  // Whether collectives may run beside other instructions; asked of plans that have such (ExecutionPlan::early). Those that
  // begin() do so one after another; wait() is called for each, in that order, and tells how it ended. Operands of `call`
  // are used until then.
  virtual bool beside() const { return false; }
  virtual void begin(const Node& node, const KernelCall& call);
  virtual bool hasBegun(const Node& node) const;  // and was not waited for
  virtual Status wait(const Node& node);
  virtual void settle() {}  // returns when none runs any more
  // Of a plan whose device runs them (ExecutionPlan::deviceRanks): puts it on the stream of `call`. What became of those
  // that were put there is asked for when the device has been waited for.
  virtual Status putOnDevice(const Node& node, const KernelCall&) { return none(node); }
  virtual Status ended() { return {}; }
  // The error where nobody can.
  static Status none(const Node& node);
};

class Executor {
 public:
  // `state(value)` gives the persistent tensor of an initializer or state value, in the memory of `device`; it must outlive
  // the executor, as must `operators`, in which the kernels are found. `device` is the one that the plan was made for; null:
  // the CPU.
  Executor(const Graph& graph, ExecutionPlan plan, std::function<Tensor(ValueId)> state, Backend backend,
           const Operators& operators, Device* device = nullptr);

  struct BoundKernel {
    NodeId node;
    InternedText implementation;
    std::int64_t ns = 0;
  };
  // Makes kernels and packs the arena, so that all that the plan takes is known; takes no memory for it yet. `memoryLimit`
  // in bytes (0 = none). Errors: above the limit, with the peak and its owners; kCancelled.
  Status makeKernels(bool reuse, std::int64_t memoryLimit, const Cancel& cancel = {});
  // Finds the memory; makes the kernels where that was not done. State may be taken over from another executor until here.
  Status bind(bool reuse, std::int64_t memoryLimit, const Cancel& cancel = {});
  const std::vector<BoundKernel>& boundKernels() const { return bound_; }

  const ExecutionPlan& plan() const { return plan_; }
  int threads() const { return threads_; }  // of its kernels
  const Graph& graph() const { return graph_; }

  // Copies one array of the batch. Error: dtype or extents that differ from the plan's.
  Status setInput(ValueId id, const TensorView& view);

  struct RunOptions {
    RandomKey key;                                // seed and step; the node part is filled in
    bool update = true;                           // whether instructions of the update entry run
    std::vector<Span>* spans = nullptr;           // appended to when not null; reserve it first
    Activity* activity = nullptr;                 // with spans: what the device recorded is added to it
    ActivityRung rung = ActivityRung::kActivity;  // with spans: the highest by which the device records
    InstructionMarks* marks = nullptr;            // told of instructions that run a kernel or a copy
    // Runs collectives; it is there where the plan's device runs them. Null: their kernels do, which know of one rank alone,
    // so that nothing is sent (trials, proofs).
    CollectiveRunner* collectives = nullptr;
    // Called before one of them begins to run beside other instructions (plan.early). Where somebody looks at every
    // instruction and may stop (`before`), none does.
    std::function<void(int)> begins;
    bool leavesRunning = false;           // they may still run when run() returns without an error
    std::atomic<bool>* cancel = nullptr;  // another thread sets it to end the run; taken back by the run that it ends
    int cancelBelow = INT_MAX;            // from this instruction on it is not looked at
    bool flushSubnormals = false;         // subnormal numbers count as zero, in every thread
    bool graphs = false;                  // parts that nobody observes as recorded graphs, where the device has them
    bool restoreState = false;            // on an error, state is put back to what it was before instruction 0
    // Called before and after an instruction; returning false from `before` stops. Null at full speed.
    std::function<bool(int)> before;
    std::function<Status(int)> after;
  };
  // Runs instructions [begin, end). Error kCancelled when `cancel` was set in time. Returns the next instruction to run.
  Result<int> run(int begin, int end, const RunOptions& options);

  // How the newest step came to the device; nothing for a device without graphs.
  const StepIssue& issue() const { return issue_; }

  // Contents of a value's buffer, row-major, for kernels: an address of the device. For a value whose memory was reused or
  // not computed this is whatever lies there: ask `unavailable` first. Invalid view for values without buffer. Of a value
  // that lies in another layout it is a copy, good until the next instruction runs; `write` is the way to change contents.
  TensorView view(ValueId id) const;
  // The same for host code, on any device: borrowed where the host can reach the memory, else a copy. Good until the next
  // instruction runs or the value is written. Contents of another layout are a row-major copy. Error kNotFound: the value
  // has no memory, with its name. As with view(), ask `unavailable` first.
  Result<Tensor> read(ValueId id) const;
  // The same memory as it lies there, in whatever layout and without a copy: for looks that no order matters to.
  TensorView stored(ValueId id) const;
  // Overwrites a value's buffer with row-major contents of the same type, and its copy in the other space where an
  // instruction before `position`, the next one to run, has made that. Error: it has no memory now.
  Status write(ValueId id, const TensorView& contents, int position = 0);
  // Whether the value's contents are intact when the next instruction to run is `position`; else why not.
  std::string unavailable(ValueId id, int position) const;

  // Memory that the instruction writes when it runs, workspace included: addresses for device().copy(). False when that is
  // not known before it runs (extents that depend on data, strings); `memory` is then to be ignored.
  bool writtenMemory(int instruction, std::vector<std::span<std::byte>>& memory) const;

  // The memory of a buffer of the arena, as far as the host can reach it; empty for others. Its contents mean something only
  // between the first and the last instruction that touch it.
  std::span<std::byte> arenaMemory(int buffer) const;

  // Whether the instruction writes state and something that may fail comes after it: what a run that may have to put the
  // state back (restoreState) saves. Nothing that can go wrong follows other writes.
  bool savesState(int instruction) const { return todo_[static_cast<std::size_t>(instruction)] & kSaves; }

  // Whether the conditions of If let the instruction run, as they stand now.
  bool conditionsHold(int instruction) const;

  Device& device() const { return device_; }
  std::int64_t plannedBytes() const { return plan_.persistentBytes + plan_.arenaBytes + plan_.hostArenaBytes; }
  std::int64_t touchedBytes() const { return device_.touchedBytes(arena_) + cpuDevice().touchedBytes(hostArena_); }
  std::int64_t dynamicBytes() const { return dynamicPeak_; }  // largest sum of dynamic buffers
  std::string_view implementation(int instruction) const { return implementations_[static_cast<std::size_t>(instruction)]; }
  // What the kernel says of its bits; null for a dynamic instruction, whose kernel is chosen when it runs, before it ran.
  const Determinism* determinism(int instruction) const { return determinism_[static_cast<std::size_t>(instruction)]; }

 private:
  // What running an instruction asks for, in one byte: between two kernels little may be looked at.
  enum Todo : std::uint8_t {
    kNothing = 0,
    kKernel = 1,
    kUpdateOnly = 2,
    kConditional = 4,
    kOrdered = 8,   // waits for an event, or is waited for
    kSaves = 16,    // writes state, and what may fail comes later
    kSkipped = 32,  // only its events count in this run
    kBegins = 64,   // collectives may begin before it
  };

  struct Laps;
  struct Lap {
    std::int64_t begin, end;  // ticks
    std::int32_t instruction;
    std::uint8_t special;  // bits of Todo that ask for more than running the kernel
  };
  Result<int> runAll(int begin, int end, const RunOptions& options);
  std::string reasonAgainstGraphs(int begin, int end, const RunOptions& options) const;
  void findPieces();
  void noteIssued(int begin, int end, const RunOptions& options, const std::string& reason);
  Result<int> runGraphs(int begin, int end, const RunOptions& options);
  Result<bool> replayPiece(std::size_t index, const RunOptions& options);
  Status recordPiece(std::size_t index, const RunOptions& options);
  static Error cancelledBefore(int instruction);
  Status prepare(Lap& lap, const RunOptions& options);
  bool beginsEarly(const RunOptions& options) const;
  void beginEarly(int index, const RunOptions& options);
  template <class Now>
  Status runFast(Laps& some, const RunOptions& options, Now now);
  Result<int> runListened(int begin, int end, const RunOptions& options);
  Status runInstruction(int index, const RunOptions& options);
  Status runPlain(int index, const RunOptions& options);
  Status runCopy(int index);
  Status bindEvents();
  Status waitBefore(int index);
  Status recordAfter(int index);
  void findSaves();
  Status saveState(int index);
  Status reserveSaved(int index);  // the memory that saveState() needs
  Status restoreState();
  Status runDynamic(int index, const RandomKey& key);
  Status allocateMemory(const Cancel& cancel);
  TensorView viewOf(int buffer) const;
  Device& deviceOf(const Instruction& instruction) const { return instruction.onHost ? cpuDevice() : device_; }
  Status writeBuffer(int buffer, const TensorView& contents);
  std::string_view kernelsFor(const Instruction& instruction) const;  // whose kernels it runs
  const Determinism* saidOnce(const Determinism& says);

  const Graph& graph_;
  ExecutionPlan plan_;
  std::function<Tensor(ValueId)> state_;
  Backend backend_;
  const Operators& operators_;
  Device& device_;
  const int threads_;
  DeviceMemory arena_, hostArena_;
  struct Bound {
    Kernel* kernel = nullptr;  // of kernels_; instructions with the same spec may have the same one
    Device* device = nullptr;
    TensorView* views = nullptr;  // of views_: the inputs, then the outputs
    std::uint32_t inputCount = 0, outputCount = 0;
    std::span<std::byte> workspace;
    Rare<std::vector<std::pair<const bool*, bool>>> predicates;
    std::unique_ptr<DeviceEvent> event;  // where another instruction waits for this one
    std::uint32_t randomNode = 0;
    StreamId stream = 0;
    bool copies = false, collective = false, byDevice = false;  // a collective that the device runs

    std::span<const TensorView> inputs() const { return {views, inputCount}; }
    std::span<TensorView> outputs() const { return {views + inputCount, outputCount}; }
  };
  // What a run wrote over of the state.
  struct Saved {
    TensorView state;
    DeviceMemory contents;
  };
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<TensorView> views_;
  std::vector<Bound> instructions_;
  bool kernelsMade_ = false, anyDynamic_ = false;
  std::vector<std::uint8_t> todo_;  // by instruction: bits of Todo
  std::size_t nextEarly_ = 0;       // of plan_.early: the one that begins next
  int goesOnAt_ = -1;               // where the newest run ended, if the next one is to follow it
  std::vector<InternedText> implementations_;
  std::vector<const Determinism*> determinism_;  // by instruction, into said_
  std::deque<Determinism> said_;                 // few: kernels of a kind say the same
  std::unordered_map<int, Tensor> inputs_;       // by buffer, for Home::kInput
  std::unordered_map<int, Tensor> constants_;    // by buffer, for constants in the memory of the device
  std::unordered_map<int, Tensor> dynamic_;      // by buffer, for Home::kDynamic
  std::unique_ptr<Graph> dynamicGraph_;          // types of dynamic values are written here while running
  std::unique_ptr<Inference> dynamicInference_;
  std::int64_t dynamicPeak_ = 0;
  std::map<const void*, Saved> saved_;  // by address of the state; the memory is used again by later runs
  std::vector<const void*> written_;    // state that this run saved
  StepGraphs graphs_;
  StepIssue issue_;
  bool ranUpdate_ = true;  // RunOptions::update of the newest run
  std::vector<BoundKernel> bound_;
  std::vector<int> copyInstructionOf_;            // by value id: the copy to the other space; empty on the CPU
  mutable std::vector<Overwritten> overwritten_;  // by buffer; found when it is first asked for
  mutable std::map<int, Tensor> logical_;         // row-major copies by buffer, until the next instruction
};

}  // namespace stepscope
