// The execution plan: instructions in order, one buffer per value, and where each buffer lives.
//
// Made once per variant from a specialised graph, before anything runs: lifetimes, views, in-place and offsets are data with
// a reason for every decision and refusal. All activation memory is one arena; state (parameters, optimizer state,
// statistics), constants and the batch have homes of their own.
//
// On a device whose memory host code cannot reach, there is a second arena on the host. What the device does not run, what
// has extents known only at run time, and what an op reads on the host is there, and copies between the two are
// instructions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/rare.h"
#include "engine/ir/shared_blocks.h"
#include "engine/ir/shared_vector.h"
#include "engine/passes/infer.h"
#include "kernels/device.h"

namespace stepscope {

enum class BufferClass : std::uint8_t {
  kParameter,
  kFrozen,
  kOptimizerState,
  kGradient,
  kActivation,
  kStash,
  kBackward,
  kWorkspace,
  kInputData,
  kConstantData,
  kUpdate
};
std::string_view bufferClassName(BufferClass bufferClass);  // "parameter" …

enum class Home : std::uint8_t {
  kArena,
  kState,     // persistent memory of an initializer or added state, owned by the step state
  kConstant,  // the tensor of a constant
  kInput,     // on the host, copied from the batch before the step
  kDynamic,   // on the host; extents are only known when the producer has run; allocated then, and accounted
};

// How a buffer comes to its memory.
enum class Sharing : std::uint8_t {
  kNone,         // its own, in its home
  kCopied,       // its own, for a value that is in the other space too
  kView,         // that of `shares`, seen with other extents
  kInPlace,      // that of `shares`, which nobody reads any more
  kWrittenOver,  // that of `shares`, a state whose next version it is
};

// Why a buffer did not take over the memory of an operand of the instruction that writes it.
struct Refusal {
  enum class Reason : std::uint8_t {
    kOff,           // option memory.inplace
    kBegunToWrite,  // the op reads inputs after that; of none of them in particular
    kOtherSpace,    // number: its space
    kOutlives,      // parameter, constant or batch
    kOtherSize,     // number: its bytes
    kKept,          // until the end of the step
    kReadAgain,     // number: by this instruction
    kSameMemory,    // number: the input that has it too, with other extents
    kSeenInParts,   // number: the input that reads elements at other places than they are written
    kOtherBranch,   // of If
    kStateIsRead,   // the state whose next version it is; number: by this instruction
  };
  int buffer = -1, operand = -1;  // of the plan
  std::int32_t input = 0;         // which one of the instruction
  Reason reason = Reason::kOff;
  std::int64_t number = 0;
};

struct Buffer {
  SharedText name;  // of the value, or "workspace"
  ValueId value;    // invalid for a workspace; two buffers have the same one where it is in both spaces
  BufferClass bufferClass = BufferClass::kActivation;
  Home home = Home::kArena;
  Sharing sharing = Sharing::kNone;
  Layout layout = Layout::kPlain;
  std::int64_t bytes = 0;     // exact
  int first = -1, last = -1;  // instructions that touch it or a buffer that shares it
  int shares = -1;            // buffer whose memory it is (view or in place); -1 = own
  int owner = -1;             // the buffer at the end of the chain of `shares`; -1 = itself
  Space space = Space::kHost;
};

enum class InstructionKind : std::uint8_t {
  kKernel,  // runs the kernel of its node; nothing where it is a view
  kCopy,    // input 0 becomes output 0: the same value in the other space
  kCommit,  // input 0, the next version, becomes the state, output 0; where it could not be written in place
};

struct Wait {
  int instruction = -1;  // an earlier one
  bool host = false;     // the host waits before it issues anything more; else only the stream does
};

struct Instruction {
  NodeId node;  // of a copy: the node that it is made for; of a commit: the one that made the next version
  InstructionKind kind = InstructionKind::kKernel;
  Phase phase = Phase::kForward;
  bool view = false;                                   // nothing to run
  bool dynamic = false;                                // an operand's extents are known only at run time
  bool updateEntry = false;                            // runs only in micro steps that update
  bool collective = false;                             // talks to other ranks
  bool onHost = false;                                 // runs on the CPU although the plan is for another device
  StreamId stream = 0;                                 // of the plan's device
  Few<int> inputs, outputs;                            // buffers; -1 = absent
  Rare<std::vector<std::pair<int, bool>>> predicates;  // bool buffers and what they must hold
  Rare<std::string> onHostReason;
  Rare<std::vector<Wait>> waits;  // see order_streams.h
  double flops = 0;               // multiply-adds count as two; moving elements counts nothing
  std::int64_t bytesRead = 0, bytesWritten = 0;
  Traffic traffic;                           // of its op
  std::shared_ptr<const KernelSpec> kernel;  // see spec(); instructions that want the same kernel share it

  // What the kernel is made from; empty for copies and commits.
  const KernelSpec& spec() const;
};

// Bytes: every buffer begins at a multiple of it, a cache line.
inline constexpr std::int64_t kArenaAlignment = 64;

// A collective that runs beside other instructions: see early_collectives.h.
struct EarlyCollective {
  int instruction = 0;  // where it is waited for
  int begins = 0;       // before this one, an earlier one
};

struct StreamPartition;  // stream_partition.h

struct ExecutionPlan {
  Space space = Space::kHost;  // of its device
  int streams = 1;
  bool deviceRanks = false;                // collectives that are not on the host are the device's own (PlanOptions)
  bool anyThreads = false;                 // kernels give the same bits for any number of threads
  SharedVector<Instruction> instructions;  // by copies of the plan
  SharedBlocks<Buffer> buffers;            // likewise; changed through edit()
  std::vector<std::int64_t> offsets;       // by buffer, bytes into its arena: multiples of kArenaAlignment; see packArena
  SharedVector<Refusal> refusals;          // by buffer, in the order of its operands
  std::vector<int> workspaces;             // by instruction, those behind the end have none: see workspaceOf
  SharedVector<int> bufferOfValue;         // by value id: where it is computed; -1 = none
  SharedVector<int> instructionOfNode;     // by node id; -1 = none
  std::int64_t arenaBytes = 0;             // in the memory of the device
  std::int64_t hostArenaBytes = 0;         // on the host, where that is not the device: copies, and values of the CPU
  std::int64_t lowerBoundBytes = 0;        // largest sum of live arena bytes in this order, each rounded up to the alignment
  std::int64_t persistentBytes = 0;        // state, constants and batch
  std::optional<std::int64_t> arenaRoomBytes;  // of its device when it was made; see arenaRoom() in fits.h
  int peakInstruction = 0;
  std::vector<EarlyCollective> early;         // in their order; both of their numbers rise
  int firstBackward = 0, firstOptimizer = 0;  // size of the plan when there is none
  int firstCommit = 0;                        // commits stand at the end
  int firstStateWrite =
      0;  // from here on instructions write over state: a step that got here is not thrown away at full speed
  std::string signature, reason;  // of the variant

  int root(int buffer) const {  // the buffer that owns the memory
    const int owner = buffers[static_cast<std::size_t>(buffer)].owner;
    return owner < 0 ? buffer : owner;
  }
  // The buffer that an instruction uses as scratch memory; -1 = none.
  int workspaceOf(std::size_t instruction) const { return instruction < workspaces.size() ? workspaces[instruction] : -1; }
  // The instruction that computes the node's outputs; -1 = none.
  int instructionOf(NodeId node) const {
    const auto index = static_cast<std::size_t>(node.index);
    return node && index < instructionOfNode.size() ? instructionOfNode[index] : -1;
  }
};

struct PlanOptions {
  bool inPlace = true;          // option memory.inplace
  bool reuse = true;            // option memory.reuse: dead blocks are given to later values
  std::vector<ValueId> pinned;  // kept until the end of the step: fetched, pinned or watched values
  std::vector<ValueId> trained;
  int threads = 1;
  bool anyThreads = false;         // option deterministic=threads
  bool unordered = false;          // option deterministic=off: kernels of a GPU get the attribute `unordered`
  bool tf32 = false;               // option cuda.tf32
  bool referenceKernels = false;   // option kernels=reference: on the CPU where the device runs no host code
  const Device* device = nullptr;  // null: the CPU
  // Collectives that run beside other instructions: what sums up over ranks, and what gathers.
  bool overlap = false, prefetch = false;
  // Collectives run on the device where it can (option distributed=nccl), on a stream of their own: the last one.
  bool deviceRanks = false;
  int streams = 1;
  std::shared_ptr<const StreamPartition> partition;  // which of them kernels run on; null: the plan's own choice
};

// Whose memory a buffer is, and why: "in place of 'x'", "own memory on the host; laid out as nChw16c".
std::string decisionText(const ExecutionPlan& plan, int buffer);

// Why a buffer did not go in place, one text per operand that it could have taken over: "input 0 'x': read again by
// instruction 12 (Mul 'y')".
std::vector<std::string> refusalTexts(const ExecutionPlan& plan, const Graph& graph, int buffer);

// How people read an instruction: the label of its node, "Copy 'x' to host", "Commit 'x'".
std::string instructionLabel(const ExecutionPlan& plan, const Graph& graph, int instruction);

// Bytes that the instruction reads of one input: all of it, or where elements are picked (Gather, Slice …) what the result
// has of them. Where elements are added to or put into memory that the result takes over (GatherGrad, ScatterND …), as many
// as there are updates.
std::int64_t bytesReadOf(const ExecutionPlan& plan, const Instruction& instruction, std::size_t input);
std::int64_t bytesOfOperand(const ExecutionPlan& plan, const Instruction& instruction,
                            std::size_t input);  // that comes once
std::int64_t bytesWrittenOf(const ExecutionPlan& plan, const Instruction& instruction, std::size_t output);

// Lifetimes, views and in place. Errors: an extent that is not a number and has no upper bound names the value.
Result<ExecutionPlan> makePlan(const Graph& graph, const Inference& inference, const PlanOptions& options,
                               const Cancel& cancel = {});

// Fills lowerBoundBytes and peakInstruction from the lifetimes of the buffers that are there.
void measureLiveBytes(ExecutionPlan& plan);

// Gives every arena buffer its offset, and measures live bytes; called when the workspaces are known (after the kernels are
// made).
void packArena(ExecutionPlan& plan, const Graph& graph, bool reuse);

// Adds the workspace of an instruction as a buffer that lives for that instruction.
void addWorkspace(ExecutionPlan& plan, std::size_t instruction, std::int64_t bytes);

}  // namespace stepscope
