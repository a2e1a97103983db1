#include "kernels/emulated_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/device_graph.h"
#include "kernels/device_health.h"
#include "kernels/emulated/activity_log.h"
#include "kernels/emulated/body.h"
#include "kernels/emulated/fibres.h"
#include "kernels/emulated/library_launch.h"
#include "kernels/emulated/order.h"
#include "kernels/emulated/regions.h"

namespace stepscope {
namespace emulated {
namespace {

class EmulatedDevice;
thread_local EmulatedDevice* launching = nullptr;  // whose kernel puts its launches together in this thread

// How often an event was recorded, and the last of these that its stream has come to.
struct Records {
  std::int64_t recorded = 0, reached = 0;
};
struct Event final : DeviceEvent {
  std::shared_ptr<Records> records = std::make_shared<Records>();  // commands may outlive the event
};
Records& recordsOf(const DeviceEvent& event) { return *static_cast<const Event&>(event).records; }

// What waits on a stream: work, or an event that must have been reached.
struct Command {
  std::function<Status()> work;
  std::shared_ptr<const Records> awaited;
  std::int64_t ticket = 0;
  ActivityRecord record;  // what is known of it before it runs; id 0: none that is recorded
};
// The same of a graph: what was put on a stream, or an event that the stream reaches or waits for.
struct Recorded {
  enum class Kind : std::uint8_t { kWork, kReaches, kWaits };
  Kind kind = Kind::kWork;
  StreamId stream = 0;
  std::function<Status()> work;
  std::string kernel;  // empty: a copy or fill
  std::shared_ptr<Records> event;
};
// A record of work that this thread puts on a stream.
ActivityRecord recordOf(ActivityKind kind, std::int64_t bytes = 0) {
  ActivityRecord record;
  record.id = activityId;
  record.kind = kind;
  record.bytes = bytes;
  return record;
}

struct Graph final : DeviceGraph {
  std::int64_t operations() const override {
    return std::ranges::count_if(recorded, [](const Recorded& one) { return one.kind == Recorded::Kind::kWork; });
  }
  std::vector<Recorded> recorded;
  Status wrong;  // the first call that cannot be recorded
};

class EmulatedDevice final : public Device,
                             public ActivitySource,
                             public GraphSource,
                             public DeviceHealth,
                             public LibraryLaunches {
 public:
  EmulatedDevice(const std::string& name, Order order)
      : order_(std::move(order)), random_(order_.seed), log_(order_.seed, order_.dropRecords) {
    facts_.name = name;
    facts_.kernels = "cuda";
    facts_.space = Space::kDevice;
    facts_.immediate = order_.eager;
    facts_.memoryBytes = order_.memory;
    streams_.resize(1);
  }
  const DeviceFacts& facts() const override { return facts_; }

  Result<DeviceMemory> allocate(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(alive());
    SS_TRY(notRecording("an allocation"));
    if (bytes == 0) return DeviceMemory();
    if (++allocations_ == order_.failAllocation)
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("device '{}': allocation {} of {} bytes was refused, as its name orders; expected memory",
                              facts_.name, allocations_, bytes));
    if (order_.memory > 0 && regions_.bytes() + bytes > order_.memory)
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("device '{}': allocation of {} bytes: {} of {} bytes are free; expected that much memory on "
                              "the device",
                              facts_.name, bytes, order_.memory - regions_.bytes(), order_.memory));
    auto made = regions_.allocate(bytes);
    if (!made) return fail(made.error().code, fmt::format("device '{}': {}", facts_.name, made.error().message));
    return DeviceMemory(this, *made, bytes);
  }

  std::int64_t roomBytes() const override { return order_.memory; }

  Status copy(void* to, const void* from, std::int64_t bytes, StreamId stream) override {
    if (bytes == 0) return alive();
    const auto work = [=, this]() -> Status {
      SS_ASSIGN(std::byte* const target, regions_.openOrHost(to, bytes, "copy: target"));
      SS_ASSIGN(const std::byte* const source, regions_.openOrHost(from, bytes, "copy: source"));
      std::memmove(target, source, static_cast<std::size_t>(bytes));
      return {};
    };
    const ActivityKind kind = copyKind(to, from);
    if (kind != ActivityKind::kCopyWithin) SS_TRY(notRecording("a copy from or to the host"));
    return put(stream, work, recordOf(kind, bytes));
  }
  Status fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId stream) override {
    if (bytes == 0) return alive();
    const auto work = [=, this]() -> Status {
      SS_ASSIGN(std::byte* const target, regions_.openOrHost(to, bytes, "fill: target"));
      std::memset(target, value, static_cast<std::size_t>(bytes));
      return {};
    };
    return put(stream, work, recordOf(ActivityKind::kFill, bytes));
  }

  Status needStreams(int count) override {
    const std::lock_guard lock(mutex_);
    if (streams_.size() < static_cast<std::size_t>(count)) streams_.resize(static_cast<std::size_t>(count));
    return alive();
  }
  Result<std::unique_ptr<DeviceEvent>> makeEvent() override { return std::make_unique<Event>(); }
  Status record(DeviceEvent& event, StreamId stream) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(alive());
    SS_TRY(hasStream(stream));
    const auto& records = static_cast<Event&>(event).records;
    if (recording_) {
      recording_->recorded.push_back({Recorded::Kind::kReaches, stream, {}, {}, records});
      return {};
    }
    reach(stream, records);
    return ranEagerly();
  }
  Status wait(StreamId stream, const DeviceEvent& event) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(alive());
    SS_TRY(hasStream(stream));
    const auto& records = static_cast<const Event&>(event).records;
    if (recording_) {
      const auto isIt = [&](const Recorded& one) { return one.kind == Recorded::Kind::kReaches && one.event == records; };
      if (std::ranges::none_of(recording_->recorded, isIt)) return notRecording("a wait for an event from before it");
      recording_->recorded.push_back({Recorded::Kind::kWaits, stream, {}, {}, records});
      return {};
    }
    const ActivityRecord waiting = waitOf(ActivityKind::kStreamWait, "an event", stream);
    await(stream, records);
    waited(waiting);
    return {};
  }
  Result<bool> reached(const DeviceEvent& event) const override {
    const Records& own = recordsOf(event);
    return own.reached >= own.recorded;
  }
  Status synchronise(const DeviceEvent& event) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(notRecording("a wait of the host"));
    const Records& own = recordsOf(event);
    const ActivityRecord waiting = waitOf(ActivityKind::kHostWait, "an event");
    runUntil([&] { return own.reached >= own.recorded; });
    waited(waiting);
    return answer();
  }
  Status synchronise() override {
    const std::lock_guard lock(mutex_);
    SS_TRY(notRecording("a wait of the host"));
    finish();
    return answer();
  }

  void startActivity(ActivityRung highest) override {
    const std::lock_guard lock(mutex_);
    log_.start(highest);
  }
  Activity takeActivity() override {
    const std::lock_guard lock(mutex_);
    return log_.take();
  }
  std::int64_t lostActivity() const override { return log_.lost(); }
  Rung rung() const override { return log_.rung(); }

  bool takes(const KernelSpec& spec) const override { return !order_.lacks.contains(spec.op) && cudaTakes(spec); }

  Status launch(Kernel& kernel, const KernelCall& call) override {
    EmulatedDevice* const before = std::exchange(launching, this);
    LibraryLaunches* const library = std::exchange(libraryLaunches, this);
    Status status = runKernel(kernel, call);
    launching = before;
    libraryLaunches = library;
    return status;
  }

  std::string whyNot(const std::shared_ptr<const LibraryCode>&, const std::string& op) const override {
    return order_.lacks.contains(op) ? fmt::format("device '{}' has no kernel for it", facts_.name) : "";
  }
  Status launch(const LibraryLaunch& described) override {
    return submit(libraryLaunch(described), described.stream, described.code);
  }
  Result<void*> nativeStream(StreamId) override { return nullptr; }

  std::optional<Error> lost() const override {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

  Status beginGraph(const std::byte* key) override {
    mutex_.lock();  // until endGraph()
    if (recording_ || !alive()) {
      const Status found = alive();
      mutex_.unlock();
      return found ? fail(ErrorCode::kInternal, fmt::format("device '{}': a graph is being recorded", facts_.name)) : found;
    }
    recording_ = std::make_unique<Graph>();
    gpu::recordedKey = key;
    return {};
  }
  Result<std::unique_ptr<DeviceGraph>> endGraph() override {
    gpu::recordedKey = nullptr;
    std::unique_ptr<Graph> made = std::move(recording_);
    mutex_.unlock();
    if (!made) return fail(ErrorCode::kInternal, fmt::format("device '{}': no graph is being recorded", facts_.name));
    if (!made->wrong) return tl::make_unexpected(std::move(made->wrong).error());
    return std::unique_ptr<DeviceGraph>(std::move(made));
  }
  Status replay(DeviceGraph& graph) override {
    const std::lock_guard lock(mutex_);
    SS_TRY(alive());
    SS_TRY(notRecording("another graph"));
    joinStreams();
    for (const Recorded& one : static_cast<const Graph&>(graph).recorded) {
      switch (one.kind) {
        case Recorded::Kind::kReaches: reach(one.stream, one.event); break;
        case Recorded::Kind::kWaits: await(one.stream, one.event); break;
        case Recorded::Kind::kWork:
          if (!one.kernel.empty()) SS_TRY(countLaunch(one.kernel));
          queue(one.stream).push_back({one.work, nullptr, 0, {}});
      }
    }
    joinStreams();
    return ranEagerly();
  }

  // A launch that Launcher::run has put together, or that calls functions of `library`.
  Status submit(std::unique_ptr<Launch> launch, StreamId stream, std::shared_ptr<const LibraryCode> library = nullptr) {
    const std::lock_guard lock(mutex_);
    SS_TRY(alive());
    const std::shared_ptr<Launch> shared(std::move(launch));
    if (!recording_) SS_TRY(countLaunch(shared->kernel()));
    const auto work = [this, shared, library]() -> Status {
      for (Memory& operand : shared->operands()) {
        if (operand.count == 0) continue;
        SS_ASSIGN(operand.open, regions_.open(operand.address, operand.count * static_cast<std::int64_t>(operand.size),
                                              fmt::format("kernel '{}': {}", shared->kernel(), operand.name)));
      }
      const std::uint64_t seed = random();
      const auto run = [&] { return shared->run(fibres_, seed, order_.tracked, log_.counts()); };
      const Status status = library ? library->guarded(run) : run();
      if (log_.on())
        ran_ = {shared->kernel(),      shared->blocks(),
                shared->threads(),     0,
                shared->sharedBytes(), occupancyOf(shared->threads(), shared->sharedBytes())};
      counted_ = {shared->traffic().read, shared->traffic().written};
      return status;
    };
    return put(stream, work, recordOf(ActivityKind::kKernel), shared->kernel());
  }

 private:
  Status alive() const { return broken_ ? Status(tl::make_unexpected(*broken_)) : Status(); }
  // From now on every call answers this.
  Status broke(const std::string& what) {
    if (!broken_) broken_ = Error{ErrorCode::kInternal, fmt::format("device '{}': {}", facts_.name, what)};
    return alive();
  }
  // What went wrong since the last time somebody waited. A wrong operand is told once; after a fault nothing works any more.
  Status answer() {
    SS_TRY(alive());
    if (!complaint_) return {};
    Error error = std::move(*complaint_);
    complaint_.reset();
    return tl::make_unexpected(std::move(error));
  }

  ActivityKind copyKind(const void* to, const void* from) {
    const std::lock_guard lock(mutex_);
    const bool in = regions_.isOwn(to), out = regions_.isOwn(from);
    return in == out ? ActivityKind::kCopyWithin : in ? ActivityKind::kCopyIn : ActivityKind::kCopyOut;
  }
  std::deque<Command>& queue(StreamId stream) { return streams_[static_cast<std::size_t>(stream)]; }

  // A wait that begins now, and its end.
  ActivityRecord waitOf(ActivityKind kind, const char* what, StreamId stream = kNoStream) {
    ActivityRecord record = recordOf(kind);
    record.stream = stream;
    record.what = what;
    record.begin = record.called = log_.now();
    record.callsByDevice = true;
    return record;
  }
  void waited(ActivityRecord record) {
    record.end = record.returned = log_.now();
    record.correlation = log_.nextCorrelation();
    log_.add(record, nullptr);
  }
  // Waits for all streams.
  void finish() {
    const ActivityRecord waiting = waitOf(ActivityKind::kHostWait, "all streams");
    runUntil([] { return false; });
    waited(waiting);
  }

  // `kernel`: empty for copies and fills.
  Status put(StreamId stream, std::function<Status()> work, ActivityRecord record, const std::string& kernel = {}) {
    const std::lock_guard lock(mutex_);
    record.called = log_.now();
    record.callsByDevice = true;
    SS_TRY(alive());
    SS_TRY(hasStream(stream));
    if (recording_) {
      recording_->recorded.push_back({Recorded::Kind::kWork, stream, std::move(work), kernel, nullptr});
      return {};
    }
    record.stream = stream;
    if (record.id != 0) record.correlation = log_.nextCorrelation();
    record.returned = log_.now();
    queue(stream).push_back({std::move(work), nullptr, 0, record});
    return ranEagerly();
  }
  Status hasStream(StreamId stream) const {
    if (stream >= 0 && static_cast<std::size_t>(stream) < streams_.size()) return {};
    return fail(ErrorCode::kInternal,
                fmt::format("device '{}': stream {}; expected one of {}", facts_.name, stream, streams_.size()));
  }
  Status ranEagerly() {
    if (!order_.eager) return {};
    runUntil([] { return false; });
    return answer();
  }
  // An error while a graph is recorded, which has then failed.
  Status notRecording(const char* what) {
    if (!recording_) return {};
    Status wrong = fail(ErrorCode::kUnsupported, fmt::format("device '{}': {} while a graph is recorded; expected work "
                                                             "of the device alone",
                                                             facts_.name, what));
    if (recording_->wrong) recording_->wrong = wrong;
    return wrong;
  }
  Status countLaunch(const std::string& kernel) {
    const std::int64_t number = ++launches_;
    if (number == order_.failLaunch)
      return broke(fmt::format("launch {} (kernel '{}') failed, as its name orders", number, kernel));
    if (order_.loseDevice > 0 && number >= order_.loseDevice)
      return broke(fmt::format("the device is lost since launch {}, as its name orders", order_.loseDevice));
    return {};
  }
  void reach(StreamId stream, const std::shared_ptr<Records>& records) {
    const std::int64_t ticket = ++records->recorded;
    const auto work = [records, ticket]() -> Status {
      records->reached = std::max(records->reached, ticket);
      return {};
    };
    queue(stream).push_back({work, nullptr, 0, {}});
  }
  void await(StreamId stream, const std::shared_ptr<Records>& records) {
    if (records->reached < records->recorded) queue(stream).push_back({{}, records, records->recorded, {}});
  }
  // What comes later on any stream waits for what is on all of them now.
  void joinStreams() {
    const auto count = static_cast<StreamId>(streams_.size());
    for (StreamId stream = 1; stream < count; ++stream) {
      const auto all = std::make_shared<Records>();
      reach(stream, all);
      await(0, all);
    }
    const auto joined = std::make_shared<Records>();
    reach(0, joined);
    for (StreamId stream = 1; stream < count; ++stream) await(stream, joined);
  }

  // Runs what lies on the streams, one command of a stream that need not wait at a time.
  template <typename Done>
  void runUntil(Done done) {
    while (!done()) {
      std::vector<std::deque<Command>*> ready;
      for (auto& stream : streams_)
        if (!stream.empty() && (!stream.front().awaited || stream.front().awaited->reached >= stream.front().ticket))
          ready.push_back(&stream);
      if (ready.empty()) return;
      auto& stream = *ready[random() % ready.size()];
      const Command command = std::move(stream.front());
      stream.pop_front();
      if (!command.work || broken_) continue;
      const std::int64_t begin = log_.on() ? log_.now() : 0;
      const Status status = command.work();
      if (command.record.id != 0 && log_.on()) {
        ActivityRecord record = command.record;
        record.begin = begin;
        record.end = log_.now();
        const bool kernel = record.kind == ActivityKind::kKernel;
        log_.add(record, kernel ? &ran_ : nullptr, kernel && log_.counts() ? &counted_ : nullptr);
      }
      if (status) continue;
      if (status.error().code == ErrorCode::kInternal)
        broke(status.error().message);
      else if (!complaint_)
        complaint_ = status.error();
    }
  }

  std::uint64_t random() {
    random_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t word = random_;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
  }

  void free(std::byte* data, std::int64_t) noexcept override {
    const std::lock_guard lock(mutex_);
    finish();  // as cudaFree does
    regions_.free(data);
  }

  DeviceFacts facts_;
  const Order order_;
  std::uint64_t random_;
  mutable std::recursive_mutex mutex_;  // sessions of several threads share the device; held while a graph is recorded
  std::unique_ptr<Graph> recording_;    // null: none is being recorded
  Regions regions_;
  Fibres fibres_;
  std::vector<std::deque<Command>> streams_;
  ActivityLog log_;
  ActivityKernel ran_;      // the kernel that ran last, while records are made
  KernelCounters counted_;  // of it
  std::int64_t allocations_ = 0, launches_ = 0;
  std::optional<Error> broken_, complaint_;
};

}  // namespace
}  // namespace emulated

namespace gpu {

constinit thread_local DirectLaunches* directLaunches = nullptr;

const Memory* Launcher::add(const char* what, std::size_t i, void* address, std::int64_t count, std::size_t size,
                            Access access) {
  if (direct_) return static_cast<const Memory*>(address);
  return pending().addOperand(fmt::format("{} {}", what, i), address, count, size, access);
}

const Memory* Launcher::addRoom(std::size_t offset, std::int64_t count, std::size_t size, Access access) {
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  if (offset + bytes > call_.workspace.size())
    wrong_ = fail(ErrorCode::kInternal,
                  fmt::format("{} bytes from byte {} of a workspace of {} bytes", bytes, offset, call_.workspace.size()));
  return add("workspace from byte", offset, call_.workspace.data() + offset, count, size, access);
}

Status Launcher::submitLaunch(std::unique_ptr<emulated::Launch> launch, StreamId stream) {
  if (!emulated::launching)
    return fail(ErrorCode::kInternal,
                fmt::format("kernel '{}' was run without its device; expected Device::launch", launch->kernel()));
  return emulated::launching->submit(std::move(launch), stream);
}

}  // namespace gpu

Result<std::unique_ptr<Device>> makeEmulatedDevice(const std::string& name) {
  SS_ASSIGN(emulated::Order order, emulated::Order::of(name));
  return std::make_unique<emulated::EmulatedDevice>(name, std::move(order));
}

}  // namespace stepscope
