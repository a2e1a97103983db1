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
    if (name == "memory") number(orders_.memory);
    if (name == "seed") number(orders_.seed);
    if (name == "fail-allocation") number(orders_.failAllocation);
    if (name == "fail-launch") number(orders_.failLaunch);
    if (name == "lose-device") number(orders_.loseDevice);
    from = to + 1;
  }
  random_ = static_cast<std::uint64_t>(orders_.seed);
  allocations_ = launches_ = 0;
  for (const auto& stream : streams_) stream->commands.clear();  // what an error has left there
  stays_ = kCuSuccess;
  memory.reset(static_cast<std::size_t>(orders_.memory));
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
  stream->commands.push_back({std::move(work), nullptr, 0});
}

void Gpu::put(CuStreamState* stream, std::function<CuResult()> work, const Work& seen) {
  if (!observer) return put(stream, std::move(work));
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const std::uint32_t correlation = ++correlation_;
  observer->called(correlation);
  put(stream, [this, now, seen, correlation, work = std::move(work)]() -> CuResult {
    const std::int64_t begin = now();
    const CuResult result = work();
    if (observer) observer->ran(correlation, seen, begin, now());
    return result;
  });
}

void Gpu::wait(CuStreamState* stream, const CuEventState& event) {
  if (event.records->reached < event.records->recorded)
    stream->commands.push_back({{}, event.records, event.records->recorded});
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
  const std::int64_t number = ++launches_;
  if (orders_.loseDevice > 0 && number >= orders_.loseDevice) return stays_ = kCuDeviceUnavailable;
  auto call = function.kernel(parameters);  // as a driver does, it keeps the bytes
  const auto work = [this, &function, blocks, threads, call = std::move(call),
                     fails = number == orders_.failLaunch]() -> CuResult {
    if (fails) return kCuIllegalAddress;
    const Memory::Opened opened(memory);
    emulated::Launch launch;
    launch.rename(function.name);
    launch.prepare(blocks, threads, call);
    return launch.run(fibres_, random(), false) ? kCuSuccess : kCuLaunchFailed;
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
