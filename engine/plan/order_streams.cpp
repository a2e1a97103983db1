#include "engine/plan/order_streams.h"

#include <algorithm>

#include "kernels/index.h"

namespace stepscope {
namespace {

constexpr int kHostLane = -1;

int laneOf(const Instruction& instruction) { return instruction.onHost ? kHostLane : instruction.stream; }

bool oneLane(const ExecutionPlan& plan) { return plan.streams <= 1 && plan.space == Space::kHost; }

// By stream: the last instruction that has run for sure; -1 = none.
using Known = std::vector<int>;

void learn(Known& known, const Known& other) {
  for (std::size_t s = 0; s < known.size(); ++s) known[s] = std::max(known[s], other[s]);
}

// What is known to have run before each instruction begins, from streams and waits.
class Clocks {
 public:
  explicit Clocks(const ExecutionPlan& plan)
      : plan_(plan), host_(at(plan.streams), -1), streams_(at(plan.streams), Known(at(plan.streams), -1)) {}

  // Instructions are entered in order.
  void enter(int index) {
    const Instruction& instruction = plan_.instructions[at(index)];
    Known known = host_;
    if (!instruction.onHost) learn(known, streams_[at(instruction.stream)]);
    before_.push_back(known);
    for (const Wait& wait : instruction.waits) add(index, wait);
    finish(index);
  }
  // One more wait of the instruction that was entered last.
  void add(int index, const Wait& wait) {
    Known known = before_[at(wait.instruction)];
    if (const Instruction& other = plan_.instructions[at(wait.instruction)]; !other.onHost)
      known[at(other.stream)] = std::max(known[at(other.stream)], wait.instruction);
    learn(before_[at(index)], known);
    if (wait.host) learn(host_, known);
    finish(index);
  }
  const Known& before(int index) const { return before_[at(index)]; }
  bool hostKnows(int stream, int index) const { return host_[at(stream)] >= index; }

 private:
  void finish(int index) {
    const Instruction& instruction = plan_.instructions[at(index)];
    if (instruction.onHost) return learn(host_, before_[at(index)]);
    Known& known = streams_[at(instruction.stream)];
    learn(known, before_[at(index)]);
    known[at(instruction.stream)] = index;
  }

  const ExecutionPlan& plan_;
  Known host_;
  std::vector<Known> streams_, before_;
};

// The last instruction of every stream that read or wrote a buffer's memory.
struct Accesses {
  Known reads, writes;
};

class Orderer {
 public:
  explicit Orderer(ExecutionPlan& plan) : plan_(plan), clocks_(plan), accesses_(plan.buffers.size()) {}

  void run() {
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      index_ = static_cast<int>(i);
      clocks_.enter(index_);
      if (instruction.view) continue;
      for (const auto& [buffer, expected] : instruction.predicates) needWrites(buffer, true);
      for (const int b : instruction.inputs)
        if (b >= 0) needWrites(b, instruction.onHost || readByHost(instruction, b));
      for (const int b : instruction.outputs)
        if (b >= 0) {
          needWrites(b, instruction.onHost);
          needReads(b, instruction.onHost);
        }
      note(instruction);
    }
  }

 private:
  // A kernel of the device whose op reads this operand while it is launched.
  bool readByHost(const Instruction& instruction, int buffer) const {
    return instruction.kind == InstructionKind::kKernel && plan_.space == Space::kDevice &&
           plan_.buffers[at(buffer)].space == Space::kHost;
  }
  Accesses& accessesOf(int buffer) {
    Accesses& accesses = accesses_[at(plan_.root(buffer))];
    if (accesses.reads.empty()) accesses.reads = accesses.writes = Known(at(plan_.streams), -1);
    return accesses;
  }
  void needWrites(int buffer, bool host) { need(accessesOf(buffer).writes, host); }
  void needReads(int buffer, bool host) { need(accessesOf(buffer).reads, host); }

  void need(const Known& accesses, bool host) {
    Instruction& instruction = plan_.instructions.edit()[at(index_)];
    for (int s = 0; s < plan_.streams; ++s) {
      const int other = accesses[at(s)];
      if (other < 0 || other == index_) continue;
      if (host ? clocks_.hostKnows(s, other) : laneOf(instruction) == s || clocks_.before(index_)[at(s)] >= other) continue;
      instruction.waits.edit().push_back({other, host});
      clocks_.add(index_, instruction.waits.get().back());
    }
  }

  // What the host does is done when the next instruction is issued.
  void note(const Instruction& instruction) {
    if (instruction.onHost) return;
    for (const int b : instruction.inputs)
      if (b >= 0) accessesOf(b).reads[at(instruction.stream)] = index_;
    for (const int b : instruction.outputs)
      if (b >= 0) accessesOf(b).writes[at(instruction.stream)] = index_;
  }

  ExecutionPlan& plan_;
  Clocks clocks_;
  std::vector<Accesses> accesses_;  // by root
  int index_ = 0;
};

void chooseStreams(ExecutionPlan& plan, std::span<const int> chosen) {
  // Collectives beside each other would be in another order on another rank.
  const auto apart = [&](const Instruction& i) {
    return i.kind == InstructionKind::kCopy || (plan.deviceRanks && i.collective && !i.onHost);
  };
  const bool copies = std::any_of(plan.instructions.begin(), plan.instructions.end(), apart);
  const int kernels = copies && plan.streams > 1 ? plan.streams - 1 : plan.streams;
  std::vector<int> tail(at(kernels), -1);            // by stream: its last kernel
  std::vector<int> madeBy(plan.buffers.size(), -1);  // by buffer
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    Instruction& instruction = plan.instructions.edit()[i];
    if (apart(instruction)) {
      instruction.stream = plan.streams - 1;
      continue;
    }
    if (instruction.onHost) continue;
    int stream = static_cast<int>(std::min_element(tail.begin(), tail.end()) - tail.begin());
    for (const int b : instruction.inputs) {
      const auto follows = b < 0 || madeBy[at(b)] < 0 ? tail.end() : std::find(tail.begin(), tail.end(), madeBy[at(b)]);
      if (follows == tail.end()) continue;
      stream = static_cast<int>(follows - tail.begin());
      break;
    }
    if (i < chosen.size() && chosen[i] >= 0) stream = chosen[i];
    instruction.stream = stream;
    const int maker =
        instruction.view && instruction.inputs[0] >= 0 ? madeBy[at(instruction.inputs[0])] : static_cast<int>(i);
    for (const int b : instruction.outputs)
      if (b >= 0) madeBy[at(b)] = maker;
    if (!instruction.view && at(stream) < tail.size()) tail[at(stream)] = static_cast<int>(i);
  }
}

// Finds the last instruction that is not ordered behind one that runs on a stream.
class Unordered {
 public:
  explicit Unordered(const ExecutionPlan& plan) : plan_(plan), clocks_(plan), lanes_(at(plan.streams) + 1) {
    for (int i = 0; i < static_cast<int>(plan.instructions.size()); ++i) {
      clocks_.enter(i);
      const Instruction& instruction = plan.instructions[at(i)];
      if (!instruction.view) lanes_[at(laneOf(instruction) + 1)].push_back(i);
    }
  }

  int last(int index) const {
    const Instruction& instruction = plan_.instructions[at(index)];
    if (instruction.onHost) return index;
    const auto stream = at(instruction.stream);
    int found = index;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (lane == stream + 1) continue;
      // Along one lane more and more is known.
      const auto known = std::partition_point(lanes_[lane].begin(), lanes_[lane].end(), [&](int other) {
        return other < index || clocks_.before(other)[stream] < index;
      });
      if (known != lanes_[lane].begin()) found = std::max(found, *std::prev(known));
    }
    return found;
  }

 private:
  const ExecutionPlan& plan_;
  Clocks clocks_;
  std::vector<std::vector<int>> lanes_;  // instructions of the host, then of each stream
};

}  // namespace

void orderStreams(ExecutionPlan& plan, int streams, std::span<const int> chosen) {
  plan.streams = std::max(1, streams);
  if (oneLane(plan)) return;
  chooseStreams(plan, chosen);
  Orderer(plan).run();
}

void extendLifetimes(ExecutionPlan& plan) {
  if (oneLane(plan)) return;
  const Unordered unordered(plan);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.view) continue;
    const int last = unordered.last(static_cast<int>(i));
    const auto extend = [&](int buffer) {
      if (buffer < 0) return;
      Buffer& root = plan.buffers.edit(at(plan.root(buffer)));
      root.last = std::max(root.last, last);
    };
    for (const int b : instruction.inputs) extend(b);
    for (const int b : instruction.outputs) extend(b);
    extend(plan.workspaceOf(i));
  }
}

}  // namespace stepscope
