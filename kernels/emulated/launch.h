// One launch of a kernel in the emulator: its operands, and how its threads run.
//
// Each thread of a block is a fibre. Blocks, and threads between two barriers, run in an order chosen by the seed. A thread
// that comes to a barrier, a shuffle or a vote gives the processor to the next; the last one to arrive lets all go on. What
// a kernel does wrong ends the launch with a Fault that names kernel, block, thread and line.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/emulated/memory.h"
#include "kernels/status.h"

namespace stepscope::emulated {

inline constexpr int kWarp = 32;
inline constexpr int kMostThreads = 1024;  // of a block, as on every GPU since 2010
inline constexpr std::int64_t kMostSharedBytes = 48 * 1024;

// What a kernel did that a GPU would not forgive.
class Fault : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Fibres;

// A thread of the block that runs.
struct Lane {
  enum class State : std::uint8_t { kReady, kAtBarrier, kInWarp, kEnded };
  int thread = 0;
  State state = State::kReady;
  int line = 0;  // of the barrier, shuffle or vote at which it waits
  std::uint32_t barriers = 0, warpBarriers = 0;
  // In a warp: what it brings, and what it takes away.
  int kind = 0, source = 0;
  std::uint32_t mask = 0;
  std::uint64_t value = 0, result = 0;
};

// A wrong value among the operands (a label, an index): which one, for people. Position and value as the kernel found them.
using ErrorOf = std::function<Error(std::int64_t position, std::int64_t value)>;

class Launch {
 public:
  Launch() = default;

  // --- while it is put together
  void rename(std::string kernel) { kernel_ = std::move(kernel); }
  Memory* addOperand(std::string name, void* address, std::int64_t count, std::size_t size, Access access);
  void setComplaint(ErrorOf complaint) { complaint_ = std::move(complaint); }
  void prepare(std::int64_t blocks, int threads, std::function<void()> body);

  const std::string& kernel() const { return kernel_; }
  std::deque<Memory>& operands() { return operands_; }
  std::int64_t blocks() const { return blocks_; }
  int threads() const { return threads_; }
  std::int64_t sharedBytes() const { return sharedBytes_; }  // of the last block that ran
  const Traffic& traffic() const { return traffic_; }        // of the last run, where it was counted

  // --- run by the device, once the operands' `open` is set. `tracked`: races and missing values are looked for; `counted`:
  // so is traffic(). Errors: kInternal for a Fault; what the complaint says of an operand.
  Status run(Fibres& fibres, std::uint64_t seed, bool tracked, bool counted);

  // --- called by the kernel, in the fibre of a thread
  void barrier(int line);
  bool barrierOr(bool vote, int line);
  enum Kind : int { kShuffle, kBallot, kSync };
  std::uint64_t inWarp(Kind kind, std::uint32_t mask, std::uint64_t value, int source, int line);
  // The array of the block that is declared where `key` stands: one for all threads, and for all passes of a loop.
  Memory* sharedArray(const void* key, std::int64_t count, std::size_t size);
  void complain(std::int64_t position, std::int64_t value);
  Toucher toucher() const;
  [[noreturn]] void fault(const std::string& what) const;

  std::int64_t block = 0;
  Lane* lane = nullptr;  // the one that runs

 private:
  friend class Fibres;
  void shareShadows();
  void runBlock(Fibres& fibres);
  void checkDeadlock() const;
  std::string whereabouts(const Lane& lane) const;
  void releaseBarrier();
  void releaseWarp(int warp, std::uint32_t mask);
  void pushAll();
  Lane* nextUnstarted();
  std::uint64_t random();
  void allWritten() const;

  std::string kernel_;
  std::deque<Memory> operands_;
  ErrorOf complaint_;
  std::int64_t blocks_ = 0;
  int threads_ = 0;
  std::function<void()> body_;
  std::deque<Shadow> shadows_;
  Traffic traffic_;
  std::uint64_t random_ = 1;
  bool tracked_ = true;

  // Of the block that runs.
  std::vector<Lane> lanes_;
  std::vector<int> ready_;  // lanes that wait to go on, last first
  std::vector<int> order_;  // of lanes that have not begun, last first
  int atBarrier_ = 0;
  bool voted_ = false;
  struct SharedArray {
    const void* key;
    Memory memory;
    std::vector<std::uint64_t> bytes;
    Shadow cells;
  };
  std::deque<SharedArray> shared_;
  std::int64_t sharedBytes_ = 0;

  bool complained_ = false;
  std::int64_t complaintPosition_ = 0, complaintValue_ = 0;
  std::string fault_;
};

// The launch whose kernel runs in this thread of the host; null outside of kernels.
extern constinit thread_local Launch* runningLaunch;

}  // namespace stepscope::emulated
