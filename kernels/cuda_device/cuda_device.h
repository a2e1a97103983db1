// The device `cuda` (kernels/cuda_device.h): memory, streams, events, kernels and graphs of one GPU, behind the interfaces
// of the engine. Sessions of several threads share it: every call takes its lock, and brings the context to its thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda_device/captured.h"
#include "kernels/cuda_device/compiled_sources.h"
#include "kernels/cuda_device/complaints.h"
#include "kernels/cuda_device/cublas_products.h"
#include "kernels/cuda_device/failures.h"
#include "kernels/cuda_device/functions.h"
#include "kernels/cuda_device/gpu.h"
#include "kernels/cuda_device/kernel_facts.h"
#include "kernels/cuda_device/library_functions.h"
#include "kernels/cuda_device/recorder.h"
#include "kernels/cuda_device/staging.h"
#include "kernels/device_graph.h"
#include "kernels/device_health.h"
#include "kernels/device_ranks.h"
#include "kernels/emulated/direct.h"
#include "kernels/generated_kernel.h"
#include "kernels/library_product.h"

namespace stepscope::cuda {

class CudaDevice;

struct Event final : DeviceEvent {
  explicit Event(CudaDevice& device) : owner(device) {}
  ~Event() override;
  CudaDevice& owner;
  CuEvent event = nullptr;
};

struct Graph final : DeviceGraph {
  Graph(CudaDevice& device, const Driver& driver) : owner(device), complaints(driver) {}
  ~Graph() override;
  std::int64_t operations() const override { return made.operations; }
  CudaDevice& owner;
  Captured::Made made;
  Complaints complaints;  // of its kernels
};

class CudaDevice final : public Device,
                         public ActivitySource,
                         public GraphSource,
                         public DeviceHealth,
                         public DeviceRanksSource,
                         public LibraryLaunches,
                         public gpu::DirectLaunches,
                         public gpu::GeneratedKernels,
                         public gpu::LibraryProducts {
 public:
  // Takes the context, which it releases.
  CudaDevice(const std::string& name, const Gpu& gpu, CuContext context);
  ~CudaDevice() override;
  // What construction cannot answer: GPU code and the first stream.
  Status prepare(const std::vector<GpuCode>& code);

  // --- Device: memory, streams and events
  const DeviceFacts& facts() const override { return facts_; }
  Result<DeviceMemory> allocate(std::int64_t bytes) override;
  std::int64_t roomBytes() const override;
  Status copy(void* to, const void* from, std::int64_t bytes, StreamId stream) override;
  Status fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId stream) override;
  Status needStreams(int count) override;
  Result<std::unique_ptr<DeviceEvent>> makeEvent() override;
  Status record(DeviceEvent& event, StreamId stream) override;
  Status wait(StreamId stream, const DeviceEvent& event) override;
  Result<bool> reached(const DeviceEvent& event) const override;
  Status synchronise(const DeviceEvent& event) override;
  Status synchronise() override;
  std::optional<Error> lost() const override;

  // --- kernels (device_launches.cpp)
  bool takes(const KernelSpec& spec) const override;
  Status launch(Kernel& kernel, const KernelCall& call) override;
  // What a kernel asks for while launch() runs it.
  Status launch(const gpu::DirectLaunch& launch) override;
  Status launch(const LibraryLaunch& launch) override;
  Result<void*> nativeStream(StreamId stream) override;
  std::string whyNot(const std::shared_ptr<const LibraryCode>& code, const std::string& op) const override;
  Result<bool> launch(const GeneratedLaunch& launch) override;
  Result<bool> product(const LibraryProduct& product) override;
  Result<void*> complaint(Complaints::ErrorOf errorOf) override;

  // --- graphs (device_graphs.cpp)
  Status beginGraph(const std::byte* key) override;
  Result<std::unique_ptr<DeviceGraph>> endGraph() override;
  Status replay(DeviceGraph& graph) override;

  // --- collectives, by NCCL (device_ranks.cpp)
  Result<std::vector<std::byte>> ranksId() override;
  Result<std::unique_ptr<DeviceRanks>> joinRanks(std::span<const std::byte> id, int rank, int size) override;

  // --- records
  void startActivity(ActivityRung highest) override;
  Activity takeActivity() override;
  std::int64_t lostActivity() const override { return recorder_.lost(); }
  Rung rung() const override { return recorder_.rung(); }

  // Of an event or a graph that goes.
  void dropEvent(CuEvent event);
  void dropGraph(const Graph& graph);

 private:
  void free(std::byte* data, std::int64_t bytes) noexcept override;
  // Every call comes through here: the context belongs to a thread, and an error that stays is told again.
  Status enter();
  Status check(CuResult result, const std::string& what) { return failures_.check(result, what); }
  Status beginCapture();
  // An error while a graph is captured, which has then failed.
  Status notCapturing(const char* what);
  // Waits for all streams.
  Status finish();
  CuResult waitFor(std::size_t stream);
  // Lets NCCL put a collective on a stream.
  Status putCollective(StreamId stream, const std::function<Status(CuStream)>& work);
  // What kernels complain of; `all`: everything has run.
  Status answer(bool all);
  Result<CuStream> streamOf(StreamId stream) const;
  // Puts a kernel of driver_ on a stream.
  Status put(CuFunction function, const char* name, std::int64_t blocks, int threads, StreamId stream, void** parameters);
  // Whether the address lies in memory of this device, or one past its end.
  bool isOwn(const void* place) const;

  // The context goes when everything that was made in it has gone.
  struct Release {
    const Driver* driver = nullptr;
    CuDevice device = 0;
    ~Release() {
      if (driver) driver->contextRelease(device);
    }
  };

  Release lastly_;
  DeviceFacts facts_;
  const Gpu gpu_;
  const Driver& driver_;
  const CuContext context_;
  mutable std::recursive_mutex mutex_;  // held while a graph is captured
  Failures failures_;
  Functions functions_;
  CompiledSources compiled_;
  mutable LibraryFunctions libraries_;
  Staging staging_;
  Complaints complaints_;
  Captured captured_;
  std::unique_ptr<Graph> capturing_;  // null: nothing is captured
  Status cannotCapture_;              // the first call that cannot be
  std::vector<Graph*> launched_;      // since somebody waited for all streams
  KernelFacts kernelFacts_;
  Recorder recorder_;
  std::unique_ptr<CublasProducts> library_ = std::make_unique<CublasProducts>();
  std::vector<CuStream> streams_;
  std::map<CuAddress, std::int64_t> regions_;  // bytes of every allocation
};

}  // namespace stepscope::cuda
