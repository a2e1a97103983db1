// A GPU that is none: streams that run when somebody waits, in an order that a seed chooses among those that the events
// allow, kernels of kernels/cuda run by fibres, and faults that the environment variable STEPSCOPE_FAKE_GPU orders, read by
// every cuInit: items with commas between,
//
//   no-device, old-driver, old-gpu, wrong-code   what a program may find
//   memory=BYTES        of the GPU (4 GiB)
//   others=BYTES        of them that other programs have (0)
//   seed=N              order of streams (1)
//   fail-allocation=N   the N-th allocation finds no memory, once
//   fail-launch=N       the N-th launch ends as an illegal address would: every later call says so
//   lose-device=N       from the N-th launch on the GPU is gone
//   devices=N           GPUs that there are (1); in one process they are one
//   no-graphs           streams cannot be captured
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda_device/driver.h"
#include "kernels/emulated/fibres.h"
#include "tests/kernels/fake_gpu/body.h"
#include "tests/kernels/fake_gpu/memory.h"
#include "tests/kernels/fake_gpu/observer.h"

// What the driver's handles point at.
struct stepscope::cuda::CuEventState {
  struct Records {
    std::int64_t recorded = 0, reached = 0;
    std::chrono::steady_clock::time_point when;  // it was reached last
  };
  std::shared_ptr<Records> records = std::make_shared<Records>();
  // Recorded last while its stream was captured: the capture, and its node behind which the event lies.
  const CuGraphState* capture = nullptr;
  std::size_t node = 0;
};
// What was put on streams while they were captured. A node waits for those that it names, and for the one before it on its
// stream.
struct stepscope::cuda::CuGraphState {
  struct Node {
    std::function<CuResult()> work;  // empty: nothing but an order
    std::vector<std::size_t> behind;
    bool kernel = false;
  };
  std::vector<Node> nodes;
  CuStreamState* origin = nullptr;
  std::map<CuStreamState*, std::size_t> last;  // by stream that is captured: its last node
  CuResult wrong = 0;
};
struct stepscope::cuda::CuGraphExecState {
  std::vector<CuGraphState::Node> nodes;
};
struct stepscope::cuda::CuStreamState {
  struct Command {
    std::function<CuResult()> work;
    std::shared_ptr<const CuEventState::Records> awaited;
    std::int64_t ticket = 0;
  };
  std::deque<Command> commands;
  CuGraphState* capture = nullptr;
};
struct stepscope::cuda::CuFunctionState {
  std::string name;
  std::function<std::function<void()>(void** parameters)> kernel;
};

namespace stepscope::fake {

using cuda::CuResult;

struct Orders {
  bool noDevice = false, oldDriver = false, oldGpu = false, wrongCode = false, noGraphs = false;
  std::int64_t devices = 1, memory = std::int64_t{4} << 30, others = 0, seed = 1, failAllocation = 0, failLaunch = 0,
               loseDevice = 0;
};

class Gpu {
 public:
  void start();  // cuInit
  const Orders& orders() const { return orders_; }

  // --- called with the mutex held, behind ready()
  std::mutex mutex;
  /// What every call answers before it does its own work: the error that stays, or a thread without context.
  CuResult ready() const;
  Memory memory;
  CuResult allocate(std::uintptr_t* address, std::size_t bytes);
  cuda::CuStreamState* addStream();
  void removeStream(cuda::CuStreamState* stream);
  void put(cuda::CuStreamState* stream, std::function<CuResult()> work);
  /// The same for work that an observer is told of.
  void put(cuda::CuStreamState* stream, std::function<CuResult()> work, const Work& seen);
  const Observer* observer = nullptr;
  /// A call that waits, and tells the observer.
  CuResult observed(Waited what, const std::function<CuResult()>& call);
  CuResult wait(cuda::CuStreamState* stream, const cuda::CuEventState& event);
  CuResult record(cuda::CuStreamState* stream, cuda::CuEventState& event);
  /// Whether a stream is captured.
  bool capturing() const;
  CuResult beginCapture(cuda::CuStreamState* stream);
  CuResult endCapture(cuda::CuStreamState* stream, cuda::CuGraphState** graph);
  CuResult launch(const cuda::CuGraphExecState& graph, cuda::CuStreamState* stream);
  /// Runs streams until `done` or until none can go on; answers the error that stays.
  CuResult runUntil(const std::function<bool()>& done);
  CuResult launch(const cuda::CuFunctionState& function, std::int64_t blocks, int threads, cuda::CuStreamState* stream,
                  void** parameters);

 private:
  std::uint64_t random();
  void add(cuda::CuStreamState* stream, cuda::CuGraphState::Node node);
  CuResult runNodes(const std::vector<cuda::CuGraphState::Node>& nodes);
  Orders orders_;
  std::vector<std::unique_ptr<cuda::CuStreamState>> streams_;
  emulated::Fibres fibres_;
  std::uint64_t random_ = 1;
  std::int64_t allocations_ = 0, launches_ = 0;
  std::uint32_t correlation_ = 0;
  CuResult stays_ = cuda::kCuSuccess;
};

Gpu& gpu();
/// The context of the calling thread; null: none.
extern thread_local const void* currentContext;

}  // namespace stepscope::fake
