#include "kernels/emulated/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/emulated/fibres.h"
#include "kernels/index.h"

namespace stepscope::emulated {

constinit thread_local Launch* runningLaunch = nullptr;

namespace {

// The fibres of the launch that runs.
thread_local Fibres* runningFibres = nullptr;

const char* kindName(int kind) {
  return kind == Launch::kShuffle ? "shuffle" : kind == Launch::kBallot ? "vote" : "warp barrier";
}

}  // namespace

// --- accesses

void outOfBounds(const Memory& memory, std::int64_t index, std::int64_t count) {
  memory.launch->fault(fmt::format("{}: element {}{} of {}", memory.name, index,
                                   count > 1 ? fmt::format(" to {}", index + count - 1) : "", memory.count));
}
void misaligned(const Memory& memory, std::int64_t index, std::size_t bytes) {
  memory.launch->fault(fmt::format("{}: {} bytes at once from element {}, whose address is no multiple of {}", memory.name,
                                   bytes, index, bytes));
}
void readOnly(const Memory& memory, std::int64_t index) {
  memory.launch->fault(fmt::format("{}: writes element {} of an operand that is only read", memory.name, index));
}
void absentOperand() { runningLaunch->fault("an operand that is absent"); }

namespace {

// Whether what `before` did is over for `now`.
bool ordered(const Toucher& before, const Toucher& now, int threads) {
  if (before.thread == 0 || before.thread == now.thread) return true;
  const auto size = static_cast<std::uint64_t>(threads);
  const std::uint64_t a = before.thread - 1, b = now.thread - 1;
  if (a / size != b / size) return false;
  if (before.barriers < now.barriers) return true;
  return a % size / kWarp == b % size / kWarp && before.warpBarriers < now.warpBarriers;
}

[[noreturn]] void race(const Memory& memory, std::int64_t index, const char* now, const char* before, const Toucher& other) {
  const std::uint64_t threads = static_cast<std::uint64_t>(memory.launch->threads()), thread = other.thread - 1;
  memory.launch->fault(fmt::format("{}: {} element {}, which thread {} of block {} {} with no barrier between", memory.name,
                                   now, index, thread % threads, thread / threads, before));
}

}  // namespace

void noteRead(const Memory& memory, std::int64_t index) {
  Cell& cell = memory.cells[index];
  const Toucher now = memory.launch->toucher();
  if (!cell.hasValue)
    memory.launch->fault(fmt::format("{}: reads element {}, which nobody has written", memory.name, index));
  const int threads = memory.launch->threads();
  if (!ordered(cell.writer, now, threads)) race(memory, index, "reads", "writes", cell.writer);
  if (cell.reader.thread != now.thread) cell.severalRead = !ordered(cell.reader, now, threads);
  cell.reader = now;
}

void noteWrite(const Memory& memory, std::int64_t index, bool atomic) {
  Cell& cell = memory.cells[index];
  const Toucher now = memory.launch->toucher();
  const int threads = memory.launch->threads();
  if (atomic && !cell.hasValue)
    memory.launch->fault(fmt::format("{}: adds to element {}, which nobody has written", memory.name, index));
  if (!(atomic && cell.atomic) && !ordered(cell.writer, now, threads))
    race(memory, index, atomic ? "adds to" : "writes", "writes", cell.writer);
  if (!ordered(cell.reader, now, threads) || (cell.severalRead && cell.reader.barriers >= now.barriers && !atomic))
    race(memory, index, atomic ? "adds to" : "writes", "reads", cell.reader);
  cell.writer = now;
  cell.hasValue = true;
  cell.atomic = atomic;
  cell.severalRead = false;
}

Toucher Launch::toucher() const {
  return {static_cast<std::uint64_t>(block) * static_cast<std::uint64_t>(threads_) +
              static_cast<std::uint64_t>(lane->thread) + 1,
          lane->barriers, lane->warpBarriers};
}

// --- putting it together

Memory* Launch::addOperand(std::string name, void* address, std::int64_t count, std::size_t size, Access access) {
  Memory& memory = operands_.emplace_back();
  memory.launch = this;
  memory.name = std::move(name);
  memory.address = static_cast<std::byte*>(address);
  memory.count = count;
  memory.size = size;
  memory.access = access;
  return &memory;
}

void Launch::prepare(std::int64_t blocks, int threads, std::function<void()> body) {
  blocks_ = blocks;
  threads_ = threads;
  body_ = std::move(body);
}

// Operands that are written have a shadow. One that lies over such an operand shares it, so that reading through one
// address and writing through the other is seen.
void Launch::shareShadows() {
  for (Memory& written : operands_) {
    if (written.access == Access::kRead || written.count == 0) continue;
    const std::byte *begin = written.address, *end = begin + written.count * static_cast<std::int64_t>(written.size);
    Shadow& shadow = shadows_.emplace_back(static_cast<std::size_t>(written.count));
    written.cells = shadow.data();
    if (written.access == Access::kReadWrite)
      for (Cell& cell : shadow) cell.hasValue = true;
    for (Memory& other : operands_) {
      const std::byte *first = other.address, *last = first + other.count * static_cast<std::int64_t>(other.size);
      if (&other == &written || other.count == 0 || last <= begin || first >= end) continue;
      if (other.access != Access::kRead)
        fault(fmt::format("{} and {} lie over each other and both are written", written.name, other.name));
      if (other.size != written.size || first != begin || last != end)
        fault(fmt::format("{} is written and lies over a part of {}", written.name, other.name));
      other.cells = written.cells;
      for (Cell& cell : shadow) cell.hasValue = true;
    }
  }
}

void Launch::allWritten() const {
  for (const Memory& memory : operands_) {
    if (memory.access != Access::kWrite || memory.cells == nullptr) continue;
    for (std::int64_t i = 0; i < memory.count; ++i)
      if (memory.cells[i].writer.thread == 0)
        throw Fault(fmt::format("kernel '{}', {} blocks of {} threads: {}: element {} of {} was never written", kernel_,
                                blocks_, threads_, memory.name, i, memory.count));
  }
}

// --- running

std::uint64_t Launch::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

namespace {

// 0 … count-1 in an order that `word` chooses: steps of a prime that does not divide the count.
template <typename Visit>
void permuted(std::int64_t count, std::uint64_t word, Visit&& visit) {
  constexpr std::array<std::int64_t, 8> kPrimes{1, 31, 37, 101, 257, 1009, 7919, 104729};
  std::int64_t step = kPrimes[word % kPrimes.size()];
  if (count % step == 0) step = 1;
  std::int64_t next = static_cast<std::int64_t>(word / 8 % static_cast<std::uint64_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    visit(next);
    next = (next + step) % count;
  }
}

}  // namespace

Status Launch::run(Fibres& fibres, std::uint64_t seed, bool tracked, bool counted) {
  random_ = seed * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull;
  tracked_ = tracked;
  // A launch of a graph runs again: nothing of the run before counts.
  shadows_.clear();
  traffic_ = {};
  for (Memory& operand : operands_) {
    operand.cells = nullptr;
    operand.traffic = counted ? &traffic_ : nullptr;
  }
  complained_ = false;
  Launch* const before = runningLaunch;
  Fibres* const fibresBefore = runningFibres;
  runningLaunch = this;
  runningFibres = &fibres;
  try {
    if (threads_ < 1 || threads_ > kMostThreads)
      throw Fault(fmt::format("kernel '{}': blocks of {} threads; expected 1 to {}", kernel_, threads_, kMostThreads));
    if (blocks_ < 1 || blocks_ > 0x7fffffff)
      throw Fault(fmt::format("kernel '{}': {} blocks; expected 1 to 2147483647", kernel_, blocks_));
    if (tracked_) shareShadows();
    permuted(blocks_, random(), [&](std::int64_t next) {
      block = next;
      runBlock(fibres);
    });
    if (tracked_) allWritten();
  } catch (const Fault& fault) {
    fault_ = fault.what();
  }
  runningLaunch = before;
  runningFibres = fibresBefore;
  lane = nullptr;
  if (!fault_.empty()) {
    fibres.clear();
    return fail(ErrorCode::kInternal, fault_);
  }
  if (complained_) return tl::make_unexpected(complaint_(complaintPosition_, complaintValue_));
  return {};
}

Lane* Launch::nextUnstarted() {
  if (order_.empty()) return nullptr;
  Lane* const next = &lanes_[at(order_.back())];
  order_.pop_back();
  return next;
}

void Launch::runBlock(Fibres& fibres) {
  lanes_.assign(at(threads_), {});
  for (int t = 0; t < threads_; ++t) lanes_[at(t)].thread = t;
  shared_.clear();
  sharedBytes_ = 0;
  ready_.clear();
  order_.clear();
  atBarrier_ = 0;
  voted_ = false;
  permuted(threads_, random(), [&](std::int64_t t) { order_.push_back(static_cast<int>(t)); });
  for (;;) {
    int next = -1;
    if (!ready_.empty()) {
      next = ready_.back();
      ready_.pop_back();
    } else if (const Lane* unstarted = nextUnstarted()) {
      next = unstarted->thread;
    } else {
      break;
    }
    fibres.resume(*this, next);
    if (!fault_.empty()) throw Fault(fault_);
  }
  checkDeadlock();
}

std::string Launch::whereabouts(const Lane& lane) const {
  switch (lane.state) {
    case Lane::State::kAtBarrier: return fmt::format("waits at the barrier of line {}", lane.line);
    case Lane::State::kInWarp: return fmt::format("waits in the {} of line {}", kindName(lane.kind), lane.line);
    case Lane::State::kEnded: return "has ended";
    case Lane::State::kReady: break;
  }
  return "runs";
}

// Nobody can go on: fine when all have ended.
void Launch::checkDeadlock() const {
  const Lane* waiting = nullptr;
  for (const Lane& lane : lanes_)
    if (lane.state != Lane::State::kEnded &&
        (!waiting || (waiting->state == Lane::State::kAtBarrier && lane.state == Lane::State::kInWarp)))
      waiting = &lane;
  if (!waiting) return;
  const auto where = fmt::format("kernel '{}', block {}, thread {}", kernel_, block, waiting->thread);
  if (waiting->state == Lane::State::kInWarp) {
    const int first = waiting->thread / kWarp * kWarp;
    for (int l = 0; l < kWarp; ++l) {
      if (!(waiting->mask >> l & 1u)) continue;
      const Lane& other = lanes_[at(first + l)];
      if (other.state != Lane::State::kInWarp || other.mask != waiting->mask || other.kind != waiting->kind)
        throw Fault(fmt::format("{}: {}, but thread {} of its mask {}", where, whereabouts(*waiting), other.thread,
                                whereabouts(other)));
    }
  }
  for (const Lane& lane : lanes_)
    if (lane.state != Lane::State::kAtBarrier)
      throw Fault(fmt::format("{}: {} with {} of {} threads, but thread {} {}", where, whereabouts(*waiting), atBarrier_,
                              threads_, lane.thread, whereabouts(lane)));
  throw Fault(where + ": nobody can go on");
}

void Launch::fault(const std::string& what) const {
  throw Fault(lane == nullptr ? fmt::format("kernel '{}': {}", kernel_, what)
                              : fmt::format("kernel '{}', block {}, thread {}: {}", kernel_, block, lane->thread, what));
}

void Launch::releaseBarrier() {
  for (Lane& other : lanes_) {
    if (other.line != lanes_[0].line)
      fault(fmt::format("threads meet at two barriers: thread 0 at line {}, thread {} at line {}", lanes_[0].line,
                        other.thread, other.line));
    other.state = Lane::State::kReady;
    ++other.barriers;
    other.result = voted_ ? 1 : 0;
  }
  atBarrier_ = 0;
  voted_ = false;
  pushAll();
}

void Launch::pushAll() {
  permuted(threads_, random(), [&](std::int64_t t) { ready_.push_back(static_cast<int>(t)); });
}

bool Launch::barrierOr(bool vote, int line) {
  Lane& mine = *lane;
  mine.line = line;
  mine.state = Lane::State::kAtBarrier;
  voted_ |= vote;
  if (++atBarrier_ == threads_) releaseBarrier();
  runningFibres->yield();
  return mine.result != 0;
}
void Launch::barrier(int line) { barrierOr(false, line); }

void Launch::releaseWarp(int warp, std::uint32_t mask) {
  const int first = warp * kWarp;
  std::uint64_t votes = 0;
  std::uint32_t barriers = 0;
  const Lane& mine = *lane;
  for (int l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1u)) continue;
    const Lane& other = lanes_[at(first + l)];
    if (other.value != 0) votes |= std::uint64_t{1} << l;
    barriers = std::max(barriers, other.warpBarriers);
    if (other.line != mine.line)
      fault(fmt::format("threads of a warp meet at two places: thread {} in the {} of line {}, thread {} at line {}",
                        mine.thread, kindName(mine.kind), mine.line, other.thread, other.line));
  }
  for (int l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1u)) continue;
    Lane& other = lanes_[at(first + l)];
    if (other.kind == kShuffle) {
      if (other.source < 0 || other.source >= kWarp || !(mask >> other.source & 1u))
        fault(fmt::format("thread {} reads lane {} in a shuffle whose mask is {:#010x}", other.thread, other.source, mask));
      other.result = lanes_[at(first + other.source)].value;
    } else {
      other.result = votes;
      if (other.kind == kSync) other.warpBarriers = barriers + 1;
    }
    other.state = Lane::State::kReady;
    ready_.push_back(other.thread);
  }
}

std::uint64_t Launch::inWarp(Kind kind, std::uint32_t mask, std::uint64_t value, int source, int line) {
  Lane& mine = *lane;
  const int warp = mine.thread / kWarp, own = mine.thread % kWarp;
  if (!(mask >> own & 1u))
    fault(fmt::format("{} of line {} with a mask, {:#010x}, that leaves the thread's own lane {} out", kindName(kind), line,
                      mask, own));
  mine.kind = kind;
  mine.mask = mask;
  mine.value = value;
  mine.source = source;
  mine.line = line;
  mine.state = Lane::State::kInWarp;
  bool complete = true;
  for (int l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1u)) continue;
    const int other = warp * kWarp + l;
    if (other >= threads_)
      fault(
          fmt::format("{} of line {} with lane {}, which a block of {} threads has not", kindName(kind), line, l, threads_));
    const Lane& lane = lanes_[at(other)];
    if (lane.state == Lane::State::kEnded)
      fault(fmt::format("{} of line {} with lane {}, whose thread {} has ended", kindName(kind), line, l, other));
    complete = complete && lane.state == Lane::State::kInWarp && lane.kind == kind && lane.mask == mask;
  }
  if (complete) releaseWarp(warp, mask);
  runningFibres->yield();
  return mine.result;
}

Memory* Launch::sharedArray(const void* key, std::int64_t count, std::size_t size) {
  for (SharedArray& array : shared_)
    if (array.key == key) return &array.memory;
  sharedBytes_ += count * static_cast<std::int64_t>(size);
  if (sharedBytes_ > kMostSharedBytes)
    fault(fmt::format("{} bytes of shared memory; expected {} at most", sharedBytes_, kMostSharedBytes));
  SharedArray& made = shared_.emplace_back();
  made.key = key;
  made.bytes.resize((static_cast<std::size_t>(count) * size + 15) / 16 * 2, 0xBAADF00DBAADF00Dull);
  made.memory.launch = this;
  made.memory.name = fmt::format("shared array {}", shared_.size());
  made.memory.count = count;
  made.memory.size = size;
  made.memory.access = Access::kPart;
  made.memory.address = made.memory.open = reinterpret_cast<std::byte*>(made.bytes.data());
  if (tracked_) {
    made.cells.resize(static_cast<std::size_t>(count));
    made.memory.cells = made.cells.data();
  }
  return &made.memory;
}

void Launch::complain(std::int64_t position, std::int64_t value) {
  if (complained_ && complaintPosition_ <= position) return;  // the first, whatever the order of the threads
  complained_ = true;
  complaintPosition_ = position;
  complaintValue_ = value;
}

}  // namespace stepscope::emulated
