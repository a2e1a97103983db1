#include "kernels/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cuda_device/captured.h"
#include "kernels/cuda_device/complaints.h"
#include "kernels/cuda_device/cublas_products.h"
#include "kernels/cuda_device/cupti_activity.h"
#include "kernels/cuda_device/driver.h"
#include "kernels/cuda_device/event_times.h"
#include "kernels/cuda_device/functions.h"
#include "kernels/cuda_device/gpu_code.h"
#include "kernels/cuda_device/kernel_facts.h"
#include "kernels/cuda_device/staging.h"
#include "kernels/device_graph.h"
#include "kernels/device_health.h"
#include "kernels/emulated/direct.h"
#include "kernels/emulated_device.h"

namespace stepscope {
namespace cuda {
namespace {

constexpr int kOldestDriver = 12000;  // 1000 * major + 10 * minor of CUDA
constexpr int kOldestCapability = 8;

std::string cudaVersion(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// A GPU as the driver describes it, before anything is allocated on it.
struct Gpu {
  const Driver* driver = nullptr;
  CuDevice device = 0;
  std::string model;
  int driverVersion = 0, major = 0, minor = 0, multiprocessors = 0, clockKhz = 0, memoryClockKhz = 0, busBits = 0;
  std::int64_t memoryBytes = 0;

  int attribute(int which) const {
    int value = 0;
    return driver->deviceAttribute(&value, which, device) == kCuSuccess ? value : 0;
  }
  // float32 additions and multiplications per second, where the cores of a multiprocessor are known.
  double flopsPerSecond() const {
    const int cores = major == 8 && minor == 0 ? 64 : major == 8 || major == 9 || major >= 10 ? 128 : 0;
    return 2.0 * cores * multiprocessors * 1e3 * clockKhz;
  }
  double bytesPerSecond() const { return 2.0 * 1e3 * memoryClockKhz * busBits / 8; }
};

// Number `index` of those that the driver counts. Errors: kUnsupported, for people.
Result<Gpu> findGpu(int index) {
  SS_ASSIGN(const Driver* const driver, Driver::load());
  Gpu gpu;
  gpu.driver = driver;
  const CuResult started = driver->init(0);
  if (started == kCuNoDevice) return unsupported("no GPU was found");
  if (started == kCuSystemDriverMismatch)
    return unsupported(fmt::format("the parts of the NVIDIA driver do not fit each other: {}", driver->describe(started)));
  if (started != kCuSuccess)
    return unsupported(fmt::format("the NVIDIA driver does not start: {}", driver->describe(started)));
  if (driver->driverVersion(&gpu.driverVersion) != kCuSuccess || gpu.driverVersion < kOldestDriver)
    return unsupported(fmt::format("the driver knows CUDA {}; expected {} or newer", cudaVersion(gpu.driverVersion),
                                   cudaVersion(kOldestDriver)));
  int count = 0;
  if (driver->deviceCount(&count) != kCuSuccess || count == 0) return unsupported("no GPU was found");
  if (index >= count)
    return unsupported(count == 1 ? "there is one GPU; expected cuda:0"
                                  : fmt::format("there are {} GPUs; expected cuda:0 to cuda:{}", count, count - 1));
  char model[256] = {};
  std::size_t bytes = 0;
  if (driver->deviceGet(&gpu.device, index) != kCuSuccess ||
      driver->deviceName(model, sizeof(model), gpu.device) != kCuSuccess ||
      driver->deviceMemory(&bytes, gpu.device) != kCuSuccess)
    return unsupported(fmt::format("GPU {} does not answer", index));
  gpu.model = model;
  gpu.memoryBytes = static_cast<std::int64_t>(bytes);
  gpu.major = gpu.attribute(kCuCapabilityMajor);
  gpu.minor = gpu.attribute(kCuCapabilityMinor);
  gpu.multiprocessors = gpu.attribute(kCuMultiprocessors);
  gpu.clockKhz = gpu.attribute(kCuClockKhz);
  gpu.memoryClockKhz = gpu.attribute(kCuMemoryClockKhz);
  gpu.busBits = gpu.attribute(kCuMemoryBusBits);
  if (gpu.major < kOldestCapability)
    return unsupported(fmt::format("{} has compute capability {}.{}; expected {}.0 or newer", gpu.model, gpu.major,
                                   gpu.minor, kOldestCapability));
  return gpu;
}

CuAddress addressOf(const void* place) { return reinterpret_cast<CuAddress>(place); }

class CudaDevice;

struct Event final : DeviceEvent {
  explicit Event(CudaDevice& device) : owner(device) {}
  ~Event() override;
  CudaDevice& owner;
  CuEvent event = nullptr;
};
CuEvent eventOf(const DeviceEvent& event) { return static_cast<const Event&>(event).event; }

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
                         public gpu::DirectLaunches,
                         public gpu::LibraryProducts {
 public:
  CudaDevice(const std::string& name, const Gpu& gpu, CuContext context)
      : gpu_(gpu),
        driver_(*gpu.driver),
        context_(context),
        functions_(driver_),
        staging_(driver_),
        complaints_(driver_),
        captured_(driver_),
        kernelFacts_(driver_, gpu.attribute(kCuThreadsOfMultiprocessor)) {
    facts_.name = name;
    facts_.kernels = "cuda";
    facts_.space = Space::kDevice;
    facts_.immediate = false;
    facts_.memoryBytes = gpu.memoryBytes;
    facts_.flopsPerSecond = gpu.flopsPerSecond();
    facts_.bytesPerSecond = gpu.bytesPerSecond();
  }
  ~CudaDevice() override {
    driver_.contextSet(context_);
    recording_.reset();
    library_.reset();
    for (CuStream stream : streams_) {
      driver_.streamSynchronize(stream);
      driver_.streamDestroy(stream);
    }
    for (const auto& [address, bytes] : regions_) driver_.free(address);
    lastly_.driver = &driver_;
    lastly_.device = gpu_.device;
  }

  // What construction cannot answer: GPU code and the first stream.
  Status prepare(const std::vector<GpuCode>& code) {
    SS_TRY(enter());
    if (Status loaded = functions_.load(code); !loaded)
      return fail(loaded.error().code, fmt::format("device '{}': {}", facts_.name, loaded.error().message));
    return needStreams(1);
  }

  const DeviceFacts& facts() const override { return facts_; }

  Result<DeviceMemory> allocate(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    SS_TRY(notCapturing("an allocation"));
    if (bytes == 0) return DeviceMemory();
    CuAddress address = 0;
    if (const CuResult result = driver_.allocate(&address, static_cast<std::size_t>(bytes)); result != kCuSuccess) {
      std::size_t free = 0, total = 0;
      if (result != kCuOutOfMemory || driver_.memoryInfo(&free, &total) != kCuSuccess)
        return failed(result, fmt::format("allocation of {} bytes", bytes));
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("device '{}': allocation of {} bytes: {} of {} bytes are free; expected "
                              "that much memory on the GPU",
                              facts_.name, bytes, free, total));
    }
    const std::string what = "filling new memory with zeros";
    Status zeroed = check(driver_.fill(address, 0, static_cast<std::size_t>(bytes), streams_[0]), what);
    if (zeroed) zeroed = check(driver_.streamSynchronize(streams_[0]), what);
    if (!zeroed) {
      driver_.free(address);
      return tl::make_unexpected(std::move(zeroed).error());
    }
    regions_[address] = bytes;
    return DeviceMemory(this, reinterpret_cast<std::byte*>(address), bytes);
  }

  Status copy(void* to, const void* from, std::int64_t bytes, StreamId stream) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    if (bytes == 0) return {};
    SS_ASSIGN(CuStream on, streamOf(stream));
    const bool target = isOwn(to), source = isOwn(from);
    if (!target || !source) SS_TRY(notCapturing("a copy from or to the host"));
    CuResult result = kCuSuccess;
    begin(on, stream,
          {target == source ? ActivityKind::kCopyWithin
           : target         ? ActivityKind::kCopyIn
                            : ActivityKind::kCopyOut,
           bytes, nullptr});
    if (target && source)
      result = driver_.copyWithin(addressOf(to), addressOf(from), static_cast<std::size_t>(bytes), on);
    else if (target)
      result = staging_.toDevice(addressOf(to), from, bytes, on);
    else if (source)
      result = staging_.toHost(to, addressOf(from), bytes, on);
    else
      result = staging_.withinHost(to, from, bytes, on);
    end(on);
    return check(result, fmt::format("copy of {} bytes from {} to {}", bytes, source ? "the GPU" : "the host",
                                     target ? "the GPU" : "the host"));
  }
  Status fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId stream) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    if (bytes == 0) return {};
    SS_ASSIGN(CuStream on, streamOf(stream));
    begin(on, stream, {ActivityKind::kFill, bytes, nullptr});
    const CuResult result = driver_.fill(addressOf(to), value, static_cast<std::size_t>(bytes), on);
    end(on);
    return check(result, fmt::format("fill of {} bytes", bytes));
  }

  Status needStreams(int count) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    while (streams_.size() < static_cast<std::size_t>(count)) {
      CuStream stream = nullptr;
      SS_TRY(check(driver_.streamCreate(&stream, kCuNonBlocking), "a new stream"));
      streams_.push_back(stream);
    }
    return {};
  }
  Result<std::unique_ptr<DeviceEvent>> makeEvent() override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    auto made = std::make_unique<Event>(*this);
    SS_TRY(check(driver_.eventCreate(&made->event, kCuNoTiming), "a new event"));
    return std::unique_ptr<DeviceEvent>(std::move(made));
  }
  Status record(DeviceEvent& event, StreamId stream) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    SS_ASSIGN(CuStream on, streamOf(stream));
    return check(driver_.eventRecord(eventOf(event), on), "recording an event");
  }
  Status wait(StreamId stream, const DeviceEvent& event) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    SS_ASSIGN(CuStream on, streamOf(stream));
    return check(driver_.streamWait(on, eventOf(event), 0), "waiting for an event");
  }
  Result<bool> reached(const DeviceEvent& event) const override {
    const std::lock_guard lock(mutex_);
    auto& self = const_cast<CudaDevice&>(*this);  // an error that stays is remembered
    SS_TRY(self.enter());
    const CuResult result = driver_.eventQuery(eventOf(event));
    if (result == kCuNotReady) return false;
    SS_TRY(self.check(result, "asking for an event"));
    return true;
  }
  Status synchronise(const DeviceEvent& event) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    SS_TRY(notCapturing("a wait of the host"));
    SS_TRY(check(driver_.eventSynchronize(eventOf(event)), "waiting for the GPU"));
    return answer(false);
  }
  Status synchronise() override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    SS_TRY(notCapturing("a wait of the host"));
    return finish();
  }

  std::optional<Error> lost() const override {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

  Status beginGraph(const std::byte* key) override {
    mutex_.lock();  // until endGraph()
    const Status begun = beginCapture();
    if (!begun) {
      mutex_.unlock();
      return begun;
    }
    gpu::recordedKey = key;
    return {};
  }
  Result<std::unique_ptr<DeviceGraph>> endGraph() override {
    gpu::recordedKey = nullptr;
    Status wrong = std::exchange(cannotCapture_, Status());
    std::unique_ptr<Graph> made = std::move(capturing_);
    const CuResult ended = captured_.end(streams_, &made->made);
    if (wrong) wrong = check(ended, "a graph");
    mutex_.unlock();
    if (!wrong) return tl::make_unexpected(std::move(wrong).error());
    return std::unique_ptr<DeviceGraph>(std::move(made));
  }
  Status replay(DeviceGraph& graph) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    auto& own = static_cast<Graph&>(graph);
    if (std::ranges::find(launched_, &own) == launched_.end()) launched_.push_back(&own);
    lastKernel_ = fmt::format("a graph of {} operations", own.made.operations);
    return check(captured_.launch(own.made.executable, streams_), lastKernel_);
  }

  void startActivity() override {
    const std::lock_guard lock(mutex_);
    if (enter()) startRecording();
  }
  Activity takeActivity() override {
    const std::lock_guard lock(mutex_);
    return recording_ && enter() ? recording_->take(streams_[0]) : Activity{};
  }
  std::int64_t lostActivity() const override { return recording_ ? recording_->lost() : 0; }
  Rung rung() const override { return rung_; }

  bool takes(const KernelSpec& spec) const override { return cudaTakes(spec); }

  Status launch(Kernel& kernel, const KernelCall& call) override {
    gpu::DirectLaunches* const before = std::exchange(gpu::directLaunches, this);
    gpu::LibraryProducts* const products = std::exchange(gpu::libraryProducts, this);
    Status status = runKernel(kernel, call);
    gpu::directLaunches = before;
    gpu::libraryProducts = products;
    return status;
  }

  // --- what a kernel asks for while launch() runs it
  Status launch(const gpu::DirectLaunch& launch) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    if (launch.blocks < 1 || launch.blocks > std::numeric_limits<std::int32_t>::max())
      return fail(ErrorCode::kInternal, fmt::format("device '{}': kernel '{}': {} blocks; expected 1 to {}", facts_.name,
                                                    launch.name, launch.blocks, std::numeric_limits<std::int32_t>::max()));
    SS_ASSIGN(CuStream on, streamOf(launch.stream));
    auto function = functions_.find(launch.tag);
    if (!function) return fail(function.error().code, fmt::format("device '{}': {}", facts_.name, function.error().message));
    lastKernel_ = launch.name;
    const ActivityKernel* const facts = recording_ && !capturing_ && activityId != 0
                                            ? &kernelFacts_.of(*function, launch.name, launch.blocks, launch.threads)
                                            : nullptr;
    begin(on, launch.stream, {ActivityKind::kKernel, 0, facts});
    const CuResult result =
        driver_.launch(*function, static_cast<unsigned>(launch.blocks), 1, 1, static_cast<unsigned>(launch.threads), 1, 1, 0,
                       on, launch.parameters.data(), nullptr);
    end(on);
    return check(result, fmt::format("kernel '{}', {} blocks of {} threads", launch.name, launch.blocks, launch.threads));
  }
  // --- what a product asks for there
  Result<bool> product(const LibraryProduct& product) override {
    static const ActivityKernel kByLibrary{"cuBLASLt", 0, 0, 0, 0, 0};
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    SS_ASSIGN(CuStream on, streamOf(product.stream));
    if (!library_->takes(product)) return false;
    lastKernel_ = kByLibrary.name;
    begin(on, product.stream, {ActivityKind::kKernel, 0, &kByLibrary});
    auto put = library_->run(product, on);
    end(on);
    if (!put) return fail(put.error().code, fmt::format("device '{}': {}", facts_.name, put.error().message));
    return put;
  }
  Result<void*> complaint(Complaints::ErrorOf errorOf) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(enter());
    if (capturing_ && capturing_->complaints.full()) SS_TRY(notCapturing("more than a thousand kernels that may complain"));
    if (!capturing_ && complaints_.full()) SS_TRY(finish());
    gpu::Complained* place = nullptr;
    Complaints& complaints = capturing_ ? capturing_->complaints : complaints_;
    SS_TRY(check(complaints.add(std::move(errorOf), &place), "memory for complaints of kernels"));
    return place;
  }

  void dropEvent(CuEvent event) {
    const std::lock_guard lock(mutex_);
    driver_.contextSet(context_);
    driver_.eventDestroy(event);
  }
  void dropGraph(const Graph& graph) {
    const std::lock_guard lock(mutex_);
    driver_.contextSet(context_);
    std::erase(launched_, &graph);
    if (!graph.made.executable) return;
    for (CuStream stream : streams_) driver_.streamSynchronize(stream);  // it may be running
    driver_.graphExecDestroy(graph.made.executable);
  }

 private:
  // Every call comes through here: the context belongs to a thread, and an error that stays is told again.
  Status enter() {
    SS_TRY(broken_ ? Status(tl::make_unexpected(*broken_)) : Status());
    return check(driver_.contextSet(context_), "the context of the GPU");
  }

  // An error of the driver. Of those that stay, later ones are told as the first one.
  tl::unexpected<Error> failed(CuResult result, const std::string& what) {
    const std::string found = driver_.describe(result);
    if (isLoss(result)) {
      broken_ = Error{ErrorCode::kInternal,
                      fmt::format("device '{}': the device is lost: {}, found at: {}", facts_.name, found, what)};
    } else if (isSticky(result)) {
      broken_ = Error{
          ErrorCode::kInternal,
          fmt::format("device '{}': a kernel failed: {}, found at: {}{}; with CUDA_LAUNCH_BLOCKING=1 the kernel is named",
                      facts_.name, found, what,
                      lastKernel_.empty() ? "" : fmt::format("; the last kernel put on a stream was '{}'", lastKernel_))};
    } else {
      const ErrorCode code = result == kCuOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kInternal;
      return fail(code, fmt::format("device '{}': {}: {}", facts_.name, what, found));
    }
    return tl::make_unexpected(*broken_);
  }
  Status check(CuResult result, const std::string& what) {
    if (result == kCuSuccess) return {};
    return failed(result, what);
  }

  // By the highest rung that can be reached, which is chosen once.
  void startRecording() {
    if (recording_) {
      recording_->start(streams_[0]);
      return;
    }
    const auto cupti = Cupti::load();
    if (cupti) {
      recording_ = std::make_unique<CuptiActivity>(**cupti);
      rung_ = {"activity", ""};
      if (recording_->start(streams_[0])) return;
    }
    recording_ = std::make_unique<EventTimes>(driver_);
    recording_->start(streams_[0]);
    rung_ = {"events",
             cupti ? "CUPTI does not record; it may need rights, or another program uses it" : cupti.error().message};
  }
  void begin(CuStream stream, StreamId id, const Recording::Work& work) {
    if (recording_) recording_->begin(stream, id, work);
  }
  void end(CuStream stream) {
    if (recording_) recording_->end(stream);
  }

  Status beginCapture() {
    SS_TRY(enter());
    SS_TRY(notCapturing("another graph"));
    auto graph = std::make_unique<Graph>(*this, driver_);
    SS_TRY(check(graph->complaints.prepare(), "memory for complaints of kernels"));
    SS_TRY(check(captured_.begin(streams_), "the capture of a graph"));
    capturing_ = std::move(graph);
    return {};
  }
  // An error while a graph is captured, which has then failed.
  Status notCapturing(const char* what) {
    if (!capturing_) return {};
    Status wrong =
        fail(ErrorCode::kUnsupported,
             fmt::format("device '{}': {} while a graph is recorded; expected work of the device alone", facts_.name, what));
    if (cannotCapture_) cannotCapture_ = wrong;
    return wrong;
  }

  // Waits for all streams.
  Status finish() {
    for (CuStream stream : streams_) SS_TRY(check(driver_.streamSynchronize(stream), "waiting for the GPU"));
    return answer(true);
  }
  Status answer(bool all) {
    if (auto error = complaints_.collect(all)) return tl::make_unexpected(std::move(*error));
    if (!all) return {};  // a graph may be running, and writes where its complaints are
    for (Graph* graph : launched_)
      if (auto error = graph->complaints.collectAgain()) return tl::make_unexpected(std::move(*error));
    launched_.clear();
    return {};
  }

  Result<CuStream> streamOf(StreamId stream) const {
    if (stream >= 0 && static_cast<std::size_t>(stream) < streams_.size()) return streams_[static_cast<std::size_t>(stream)];
    return fail(ErrorCode::kInternal,
                fmt::format("device '{}': stream {}; expected one of {}", facts_.name, stream, streams_.size()));
  }

  // Whether the address lies in memory of this device, or one past its end.
  bool isOwn(const void* place) const {
    const CuAddress address = addressOf(place);
    auto it = regions_.upper_bound(address);
    if (it == regions_.begin()) return false;
    --it;
    return address - it->first <= static_cast<CuAddress>(it->second);
  }

  void free(std::byte* data, std::int64_t) noexcept override {
    const std::lock_guard lock(mutex_);
    driver_.contextSet(context_);
    for (CuStream stream : streams_) driver_.streamSynchronize(stream);  // work that may still use it
    driver_.free(addressOf(data));
    regions_.erase(addressOf(data));
  }

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
  mutable std::recursive_mutex mutex_;  // sessions of several threads share the device; held while a graph is captured
  Functions functions_;
  Staging staging_;
  Complaints complaints_;
  Captured captured_;
  std::unique_ptr<Graph> capturing_;  // null: nothing is captured
  Status cannotCapture_;              // the first call that cannot be
  std::vector<Graph*> launched_;      // since somebody waited for all streams
  KernelFacts kernelFacts_;
  std::unique_ptr<Recording> recording_;  // null until somebody asks for activity
  Rung rung_;
  std::unique_ptr<CublasProducts> library_ = std::make_unique<CublasProducts>();
  std::vector<CuStream> streams_;
  std::map<CuAddress, std::int64_t> regions_;  // bytes of every allocation
  std::string lastKernel_;
  std::optional<Error> broken_;
};

Event::~Event() {
  if (event) owner.dropEvent(event);
}
Graph::~Graph() { owner.dropGraph(*this); }

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<Device>> makeCudaDevice(const std::string& name) {
  int index = 0;
  if (const std::size_t colon = name.find(':'); colon != std::string::npos) {
    const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
    const auto [at, error] = std::from_chars(begin, end, index);
    if (error != std::errc() || at != end || index < 0)
      return invalid(fmt::format("device '{}': found '{}'; expected the number of a GPU, as in cuda:0", name, begin));
  }
  const auto lacking = [&](const Error& error) {
    return fail(error.code,
                fmt::format("device '{}': {}; expected a GPU, or --device cpu or emulated", name, error.message));
  };
  const auto code = cuda::gpuCode();
  const auto gpu = cuda::findGpu(index);
  if (!code) {
    const std::string more = gpu ? "" : "; " + gpu.error().message;
    return lacking({code.error().code, code.error().message + more});
  }
  if (!gpu) return lacking(gpu.error());
  cuda::CuContext context = nullptr;
  if (const cuda::CuResult result = gpu->driver->contextRetain(&context, gpu->device); result != cuda::kCuSuccess)
    return fail(result == cuda::kCuOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kInternal,
                fmt::format("device '{}': its context: {}", name, gpu->driver->describe(result)));
  auto device = std::make_unique<cuda::CudaDevice>(name, *gpu, context);
  SS_TRY(device->prepare(*code));
  return device;
}

Result<std::string> describeGpu() {
  const auto code = cuda::gpuCode();
  const auto gpu = cuda::findGpu(0);
  if (!code) return unsupported(code.error().message + (gpu ? "" : "; " + gpu.error().message));
  if (!gpu) return tl::make_unexpected(gpu.error());
  return fmt::format("{}, compute capability {}.{}, {:.1f} GiB, driver for CUDA {}", gpu->model, gpu->major, gpu->minor,
                     static_cast<double>(gpu->memoryBytes) / (1 << 30), cuda::cudaVersion(gpu->driverVersion));
}

}  // namespace stepscope
