#include "tests/kernels/fake_gpu/gpu.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "kernels/emulated/launch.h"

namespace stepscope {

std::map<std::string, gpu::FakeKernel>& gpu::fakeKernels() {
  static auto* const kernels = new std::map<std::string, FakeKernel>();
  return *kernels;
}

namespace fake {

using namespace cuda;

thread_local const void* currentContext = nullptr;

namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// Never destroyed, as everything here: programs let go of devices when they end.
Gpu& gpu() {
  static Gpu* const gpu = new Gpu();
  return *gpu;
}

void Gpu::start() {
  orders_ = {};
  const char* const text = std::getenv("STEPSCOPE_FAKE_GPU");
  const std::string all = text ? text : "";
  for (std::size_t from = 0; from < all.size();) {
    const std::size_t to = std::min(all.find(',', from), all.size());
    const std::string item = all.substr(from, to - from), name = item.substr(0, item.find('='));
    const auto number = [&](std::int64_t& into) {
      std::from_chars(item.data() + std::min(item.size(), name.size() + 1), item.data() + item.size(), into);
    };
    if (name == "no-device") orders_.noDevice = true;
    if (name == "old-driver") orders_.oldDriver = true;
    if (name == "old-gpu") orders_.oldGpu = true;
    if (name == "wrong-code") orders_.wrongCode = true;
    if (name == "no-graphs") orders_.noGraphs = true;
    if (name == "memory") number(orders_.memory);
    if (name == "others") number(orders_.others);
    if (name == "seed") number(orders_.seed);
    if (name == "devices") number(orders_.devices);
    if (name == "fail-allocation") number(orders_.failAllocation);
    if (name == "fail-launch") number(orders_.failLaunch);
    if (name == "lose-device") number(orders_.loseDevice);
    from = to + 1;
  }
  random_ = static_cast<std::uint64_t>(orders_.seed);
  allocations_ = launches_ = 0;
  for (const auto& stream : streams_) stream->commands.clear();  // what an error has left there
  stays_ = kCuSuccess;
  memory.reset(static_cast<std::size_t>(orders_.memory - orders_.others));
}

CuResult Gpu::ready() const {
  constexpr CuResult kInvalidContext = 201;
  return stays_ != kCuSuccess ? stays_ : currentContext ? kCuSuccess : kInvalidContext;
}

CuResult Gpu::allocate(std::uintptr_t* address, std::size_t bytes) {
  if (++allocations_ == orders_.failAllocation) return kCuOutOfMemory;
  *address = memory.allocate(bytes);
  return *address ? kCuSuccess : kCuOutOfMemory;
}

CuStreamState* Gpu::addStream() { return streams_.emplace_back(std::make_unique<CuStreamState>()).get(); }

void Gpu::removeStream(CuStreamState* stream) {
  std::erase_if(streams_, [&](const auto& one) { return one.get() == stream; });
}

void Gpu::put(CuStreamState* stream, std::function<CuResult()> work) {
  if (stream->capture) return add(stream, {std::move(work), {}, false});
  stream->commands.push_back({std::move(work), nullptr, 0});
}

void Gpu::put(CuStreamState* stream, std::function<CuResult()> work, const Work& seen) {
  if (stream->capture) return add(stream, {std::move(work), {}, seen.kind == Seen::kKernel});
  if (!observer) return put(stream, std::move(work));
  const std::uint32_t correlation = ++correlation_;
  const std::int64_t called = now();
  put(stream, [this, seen, correlation, work = std::move(work)]() -> CuResult {
    const std::int64_t begin = now();
    const CuResult result = work();
    if (observer) observer->ran(correlation, seen, begin, now());
    return result;
  });
  observer->called(correlation, called, now());
}

CuResult Gpu::observed(Waited what, const std::function<CuResult()>& call) {
  const std::uint32_t correlation = ++correlation_;
  const std::int64_t begin = now();
  const CuResult result = call();
  if (!observer) return result;
  const std::int64_t end = now();
  observer->called(correlation, begin, end);
  observer->waited(correlation, what, begin, end);
  return result;
}

CuResult Gpu::wait(CuStreamState* stream, const CuEventState& event) {
  CuGraphState* const capture = stream->capture;
  if (!capture && event.capture) {
    // A stream joins the capture of the event that it waits for.
    stream->capture = const_cast<CuGraphState*>(event.capture);
    add(stream, {{}, {event.node}, false});
    return kCuSuccess;
  }
  if (capture) {
    if (event.capture != capture) return capture->wrong = kCuCaptureIsolation;
    add(stream, {{}, {event.node}, false});
    return kCuSuccess;
  }
  if (event.records->reached < event.records->recorded)
    stream->commands.push_back({{}, event.records, event.records->recorded});
  return kCuSuccess;
}

CuResult Gpu::record(CuStreamState* stream, CuEventState& event) {
  event.capture = stream->capture;
  if (stream->capture) {
    if (!stream->capture->last.contains(stream)) add(stream, {});
    event.node = stream->capture->last.at(stream);
    return kCuSuccess;
  }
  const auto records = event.records;
  const std::int64_t ticket = ++records->recorded;
  put(stream, [records, ticket]() -> CuResult {
    records->reached = std::max(records->reached, ticket);
    records->when = std::chrono::steady_clock::now();
    return kCuSuccess;
  });
  return kCuSuccess;
}

void Gpu::add(CuStreamState* stream, CuGraphState::Node node) {
  CuGraphState& capture = *stream->capture;
  if (const auto before = capture.last.find(stream); before != capture.last.end()) node.behind.push_back(before->second);
  capture.last[stream] = capture.nodes.size();
  capture.nodes.push_back(std::move(node));
}

bool Gpu::capturing() const {
  return std::ranges::any_of(streams_, [](const auto& stream) { return stream->capture != nullptr; });
}

CuResult Gpu::beginCapture(CuStreamState* stream) {
  if (orders_.noGraphs || stream->capture) return kCuCaptureUnsupported;
  stream->capture = new CuGraphState();
  stream->capture->origin = stream;
  return kCuSuccess;
}

// Everything that the other streams of the capture have done must be known to the first one.
CuResult Gpu::endCapture(CuStreamState* stream, CuGraphState** graph) {
  CuGraphState* const capture = stream->capture;
  if (!capture || capture->origin != stream) return kCuCaptureUnsupported;
  std::vector<std::size_t> open;
  if (const auto last = capture->last.find(stream); last != capture->last.end()) open.push_back(last->second);
  std::vector<bool> known(capture->nodes.size(), false);
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (known[node]) continue;
    known[node] = true;
    open.insert(open.end(), capture->nodes[node].behind.begin(), capture->nodes[node].behind.end());
  }
  CuResult result = capture->wrong;
  if (result == kCuSuccess && std::ranges::find(known, false) != known.end()) result = kCuCaptureUnjoined;
  for (const auto& one : streams_)
    if (one->capture == capture) one->capture = nullptr;
  *graph = result == kCuSuccess ? capture : nullptr;
  if (result != kCuSuccess) delete capture;
  return result;
}

// In an order that the seed chooses among those that the nodes allow.
CuResult Gpu::runNodes(const std::vector<CuGraphState::Node>& nodes) {
  std::vector<bool> done(nodes.size(), false);
  for (std::size_t left = nodes.size(); left > 0; --left) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (!done[i] && std::ranges::all_of(nodes[i].behind, [&](std::size_t before) { return done[before]; }))
        ready.push_back(i);
    const std::size_t next = ready[random() % ready.size()];
    if (nodes[next].kernel) {
      const std::int64_t number = ++launches_;
      if (orders_.loseDevice > 0 && number >= orders_.loseDevice) return kCuDeviceUnavailable;
      if (number == orders_.failLaunch) return kCuIllegalAddress;
    }
    if (nodes[next].work)
      if (const CuResult result = nodes[next].work(); result != kCuSuccess) return result;
    done[next] = true;
  }
  return kCuSuccess;
}

CuResult Gpu::launch(const CuGraphExecState& graph, CuStreamState* stream) {
  put(stream, [this, nodes = graph.nodes]() -> CuResult { return runNodes(nodes); });
  return kCuSuccess;
}

CuResult Gpu::runUntil(const std::function<bool()>& done) {
  while (stays_ == kCuSuccess && !done()) {
    std::vector<CuStreamState*> ready;
    for (const auto& stream : streams_)
      if (!stream->commands.empty() && (!stream->commands.front().awaited ||
                                        stream->commands.front().awaited->reached >= stream->commands.front().ticket))
        ready.push_back(stream.get());
    if (ready.empty()) break;
    CuStreamState& stream = *ready[random() % ready.size()];
    const CuStreamState::Command command = std::move(stream.commands.front());
    stream.commands.pop_front();
    if (command.work) stays_ = command.work();
  }
  return stays_;
}

CuResult Gpu::launch(const CuFunctionState& function, std::int64_t blocks, int threads, CuStreamState* stream,
                     void** parameters) {
  const std::int64_t number = stream->capture ? 0 : ++launches_;  // what a graph launches is counted when it does
  if (orders_.loseDevice > 0 && number >= orders_.loseDevice) return stays_ = kCuDeviceUnavailable;
  auto call = function.kernel(parameters);  // as a driver does, it keeps the bytes
  const auto work = [this, &function, blocks, threads, call = std::move(call),
                     fails = number != 0 && number == orders_.failLaunch]() -> CuResult {
    if (fails) return kCuIllegalAddress;
    const Memory::Opened opened(memory);
    emulated::Launch launch;
    launch.rename(function.name);
    launch.prepare(blocks, threads, call);
    return launch.run(fibres_, random(), false, false) ? kCuSuccess : kCuLaunchFailed;
  };
  put(stream, work, {Seen::kKernel, 0, blocks, threads, function.name.c_str()});
  return kCuSuccess;
}

std::uint64_t Gpu::random() {
  random_ += 0x9E3779B97F4A7C15ull;
  std::uint64_t word = random_;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
  return word ^ (word >> 31);
}

}  // namespace fake
}  // namespace stepscope
