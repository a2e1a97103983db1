// libcuda.so.1 of the fake GPU: the functions that kernels/cuda_device calls, with the behaviour that the CUDA driver API
// documents. What a program does wrong (a thread without context, a range that no allocation holds, memory that is not
// pinned) is an error here, though a driver may forgive it.
#include "kernels/cuda_device/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/kernels/fake_gpu/compiled_thread.h"
#include "tests/kernels/fake_gpu/gpu.h"

namespace stepscope::cuda {
struct CuModuleState {
  void* library = nullptr;  // what the fake NVRTC has compiled
  std::map<std::string, std::unique_ptr<CuFunctionState>> functions;
};
}  // namespace stepscope::cuda

using namespace stepscope::cuda;
namespace fake = stepscope::fake;

namespace {

constexpr CuResult kInvalidValue = 1;
constexpr char kFakeCode[] = "fake GPU code", kFakeLibrary[] = "fake GPU library ";
char context;  // its address is the context

std::map<void*, std::size_t>& pinned() {
  static auto* const memory = new std::map<void*, std::size_t>();
  return *memory;
}
bool isPinned(const void* place, std::size_t bytes) {
  auto it = pinned().upper_bound(const_cast<void*>(place));
  if (it == pinned().begin()) return false;
  --it;
  return static_cast<const char*>(place) + bytes <= static_cast<char*>(it->first) + it->second;
}

// f(gpu) with the GPU locked, unless an error stays.
template <typename F>
CuResult withGpu(F&& f) {
  fake::Gpu& gpu = fake::gpu();
  const std::lock_guard lock(gpu.mutex);
  const CuResult before = gpu.ready();
  return before == kCuSuccess ? f(gpu) : before;
}

// A copy that runs when the stream comes to it.
CuResult copyLater(CuStream stream, void* to, const void* from, std::size_t bytes, bool valid, fake::Seen kind) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    if (!valid) return kInvalidValue;
    const auto work = [&gpu, to, from, bytes]() -> CuResult {
      const fake::Memory::Opened opened(gpu.memory);
      std::memmove(to, from, bytes);
      return kCuSuccess;
    };
    gpu.put(stream, work, {kind, bytes});
    return kCuSuccess;
  });
}
// Where the thread is that calls a compiled kernel: in its block, and the block.
unsigned indexOf(int which) {
  return which == 0 ? static_cast<unsigned>(stepscope::gpu::threadIndex())
                    : static_cast<unsigned>(stepscope::gpu::blockIndex());
}
constexpr fake::CompiledThread kThread{indexOf, [] { stepscope::gpu::syncThreads(); },
                                       [](double value, int lanes) { return stepscope::gpu::shuffleXor(value, lanes); }};
// What reads the parameters of a kernel that the fake NVRTC has compiled, and gives a call of it. They are addresses and
// other words of 64 bits; a library with `fakeBytes` says of which it wants the address of how many bytes.
std::function<std::function<void()>(void**)> compiledKernel(void* library) {
  const auto count = reinterpret_cast<int (*)(const fake::CompiledThread&)>(dlsym(library, "fakeParameters"))(kThread);
  const auto call = reinterpret_cast<void (*)(void**)>(dlsym(library, "fakeCall"));
  const auto bytesOf = reinterpret_cast<std::size_t (*)(int)>(dlsym(library, "fakeBytes"));
  return [count, call, bytesOf](void** parameters) -> std::function<void()> {
    std::vector<void*> values;
    std::vector<std::shared_ptr<std::string>> kept;
    for (int i = 0; i < count; ++i) {
      const std::size_t bytes = bytesOf ? bytesOf(i) : 0;
      if (bytes > 0) kept.push_back(std::make_shared<std::string>(static_cast<const char*>(parameters[i]), bytes));
      values.push_back(bytes > 0 ? static_cast<void*>(kept.back()->data()) : *static_cast<void**>(parameters[i]));
    }
    return [call, values, kept]() mutable { call(values.data()); };
  };
}
bool onGpu(CuAddress address, std::size_t bytes) { return fake::gpu().memory.holds(address, bytes); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// For tests: calls each(name, data) for the kernels that there are.
void fakeGpuKernels(void (*each)(const char* name, void* data), void* data) {
  for (const auto& [name, kernel] : stepscope::gpu::fakeKernels()) each(name.c_str(), data);
}

/// For the fake CUPTI.
void fakeGpuObserve(const fake::Observer* observer) {
  const std::lock_guard lock(fake::gpu().mutex);
  fake::gpu().observer = observer;
}

/// For the fake libraries.
CuResult fakeGpuPut(CuStream stream, void (*work)(void* data), void* data, const char* name) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    const auto run = [&gpu, work, data]() -> CuResult {
      const fake::Memory::Opened opened(gpu.memory);
      work(data);
      return kCuSuccess;
    };
    gpu.put(stream, run, {fake::Seen::kKernel, 0, 1, 256, name});
    return kCuSuccess;
  });
}

/// For the fake libraries.
CuResult fakeGpuRun(CuStream stream) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    const CuResult ran = gpu.runUntil([&] { return stream->commands.empty(); });
    return ran == kCuSuccess && !stream->commands.empty() ? kCuNotReady : ran;
  });
}

CuResult cuInit(unsigned) {
  fake::Gpu& gpu = fake::gpu();
  const std::lock_guard lock(gpu.mutex);
  gpu.start();
  return gpu.orders().noDevice ? kCuNoDevice : kCuSuccess;
}
CuResult cuDriverGetVersion(int* version) {
  *version = fake::gpu().orders().oldDriver ? 11040 : 13000;
  return kCuSuccess;
}
CuResult cuGetErrorName(CuResult error, const char** name) {
  switch (error) {
    case kCuOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case kCuDeviceUnavailable: *name = "CUDA_ERROR_DEVICE_UNAVAILABLE"; break;
    case kCuIllegalAddress: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case kCuNoBinaryForGpu: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
    case kCuLaunchFailed: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: return kInvalidValue;
  }
  return kCuSuccess;
}
CuResult cuGetErrorString(CuResult error, const char** text) {
  *text = error == kCuIllegalAddress ? "an illegal memory access was encountered" : nullptr;
  return *text ? kCuSuccess : kInvalidValue;
}

CuResult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(fake::gpu().orders().devices);
  return kCuSuccess;
}
CuResult cuDeviceGet(CuDevice* device, int ordinal) {
  *device = 0;
  return ordinal >= 0 && ordinal < fake::gpu().orders().devices ? kCuSuccess : 101;
}
CuResult cuDeviceGetName(char* name, int length, CuDevice) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return kCuSuccess;
}
CuResult cuDeviceTotalMem_v2(std::size_t* bytes, CuDevice) {
  *bytes = static_cast<std::size_t>(fake::gpu().orders().memory);
  return kCuSuccess;
}
CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice) {
  switch (attribute) {
    case kCuCapabilityMajor: *value = fake::gpu().orders().oldGpu ? 7 : 9; break;
    case kCuCapabilityMinor: *value = fake::gpu().orders().oldGpu ? 5 : 0; break;
    case kCuMultiprocessors: *value = 132; break;
    case kCuClockKhz: *value = 1980000; break;
    case kCuMemoryClockKhz: *value = 3201000; break;
    case kCuMemoryBusBits: *value = 6144; break;
    case kCuThreadsOfMultiprocessor: *value = 2048; break;
    default: return kInvalidValue;
  }
  return kCuSuccess;
}

CuResult cuDevicePrimaryCtxRetain(CuContext* made, CuDevice) {
  *made = reinterpret_cast<CuContext>(&context);
  return kCuSuccess;
}
CuResult cuDevicePrimaryCtxRelease_v2(CuDevice) { return kCuSuccess; }
CuResult cuCtxSetCurrent(CuContext now) {
  fake::currentContext = now;
  return kCuSuccess;
}

CuResult cuCtxSynchronize() {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    if (gpu.capturing()) return kCuCaptureUnsupported;
    return gpu.runUntil([] { return false; });
  });
}

CuResult cuModuleLoadData(CuModule* module, const void* image) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    if (gpu.orders().wrongCode) return kCuNoBinaryForGpu;
    if (std::strncmp(static_cast<const char*>(image), kFakeLibrary, sizeof(kFakeLibrary) - 1) == 0) {
      const std::string path = static_cast<const char*>(image) + sizeof(kFakeLibrary) - 1;
      void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      std::remove(path.c_str());
      if (!library) return kCuInvalidImage;
      *module = new CuModuleState{library, {}};
      return kCuSuccess;
    }
    if (std::strncmp(static_cast<const char*>(image), kFakeCode, sizeof(kFakeCode) - 1) != 0) return kCuInvalidImage;
    *module = new CuModuleState();
    return kCuSuccess;
  });
}
CuResult cuModuleUnload(CuModule module) {
  delete module;
  return kCuSuccess;
}
CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  return withGpu([&](fake::Gpu&) -> CuResult {
    if (module->library) {
      auto& made = module->functions[name];
      made = std::make_unique<CuFunctionState>(CuFunctionState{name, compiledKernel(module->library)});
      *function = made.get();
      return kCuSuccess;
    }
    const auto& kernels = stepscope::gpu::fakeKernels();
    const auto found = kernels.find(name);
    if (found == kernels.end()) return kCuNotFound;
    auto& made = module->functions[name];
    if (!made) made = std::make_unique<CuFunctionState>(CuFunctionState{name, found->second});
    *function = made.get();
    return kCuSuccess;
  });
}
CuResult cuLaunchKernel(CuFunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CuStream stream, void** parameters,
                        void** extra) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || sharedBytes != 0 || extra || gridX == 0 || blockX == 0 ||
        blockX > 1024)
      return kInvalidValue;
    return gpu.launch(*function, gridX, static_cast<int>(blockX), stream, parameters);
  });
}

CuResult cuFuncGetAttribute(int* value, int attribute, CuFunction function) {
  if (!function) return kInvalidValue;
  *value = attribute == kCuRegisters ? 40 : attribute == kCuSharedBytes ? 512 : 0;
  return kCuSuccess;
}
CuResult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CuFunction function, int threads, std::size_t) {
  if (!function || threads <= 0) return kInvalidValue;
  *blocks = std::min(32, 1024 / threads);  // half of the threads
  return kCuSuccess;
}

CuResult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    *total = static_cast<std::size_t>(gpu.orders().memory);
    *free = gpu.memory.total() - std::min(gpu.memory.total(), gpu.memory.used());
    return kCuSuccess;
  });
}
CuResult cuMemAlloc_v2(CuAddress* address, std::size_t bytes) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    std::uintptr_t made = 0;
    const CuResult result = gpu.allocate(&made, bytes);
    *address = made;
    return result;
  });
}
CuResult cuMemFree_v2(CuAddress address) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    const CuResult result = gpu.runUntil([] { return false; });
    return gpu.memory.free(address) ? result : kInvalidValue;
  });
}
CuResult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  return withGpu([&](fake::Gpu&) -> CuResult {
    *address = std::malloc(bytes);
    pinned()[*address] = bytes;
    return kCuSuccess;
  });
}
CuResult cuMemFreeHost(void* address) {
  pinned().erase(address);
  std::free(address);
  return kCuSuccess;
}

CuResult cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, std::size_t bytes, CuStream stream) {
  return copyLater(stream, reinterpret_cast<void*>(to), from, bytes, onGpu(to, bytes) && isPinned(from, bytes),
                   fake::Seen::kCopyIn);
}
CuResult cuMemcpyDtoHAsync_v2(void* to, CuAddress from, std::size_t bytes, CuStream stream) {
  return copyLater(stream, to, reinterpret_cast<const void*>(from), bytes, onGpu(from, bytes) && isPinned(to, bytes),
                   fake::Seen::kCopyOut);
}
CuResult cuMemcpyDtoDAsync_v2(CuAddress to, CuAddress from, std::size_t bytes, CuStream stream) {
  return copyLater(stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                   onGpu(to, bytes) && onGpu(from, bytes), fake::Seen::kCopyWithin);
}
CuResult cuMemsetD8Async(CuAddress to, unsigned char value, std::size_t bytes, CuStream stream) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    if (!onGpu(to, bytes)) return kInvalidValue;
    const auto work = [&gpu, to, value, bytes]() -> CuResult {
      const fake::Memory::Opened opened(gpu.memory);
      std::memset(reinterpret_cast<void*>(to), value, bytes);
      return kCuSuccess;
    };
    gpu.put(stream, work, {fake::Seen::kFill, bytes});
    return kCuSuccess;
  });
}

CuResult cuStreamCreate(CuStream* stream, unsigned) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    *stream = gpu.addStream();
    return kCuSuccess;
  });
}
CuResult cuStreamDestroy_v2(CuStream stream) {
  fake::Gpu& gpu = fake::gpu();
  const std::lock_guard lock(gpu.mutex);
  gpu.removeStream(stream);
  return kCuSuccess;
}
CuResult cuStreamSynchronize(CuStream stream) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    if (stream->capture) return stream->capture->wrong = kCuCaptureUnsupported;
    return gpu.observed(fake::Waited::kForStream, [&] { return gpu.runUntil([&] { return stream->commands.empty(); }); });
  });
}
CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned) {
  return withGpu(
      [&](fake::Gpu& gpu) { return gpu.observed(fake::Waited::kStreamForEvent, [&] { return gpu.wait(stream, *event); }); });
}
CuResult cuStreamBeginCapture_v2(CuStream stream, int mode) {
  return withGpu([&](fake::Gpu& gpu) { return mode == kCuCaptureThreadLocal ? gpu.beginCapture(stream) : kInvalidValue; });
}
CuResult cuStreamEndCapture(CuStream stream, CuGraph* graph) {
  return withGpu([&](fake::Gpu& gpu) { return gpu.endCapture(stream, graph); });
}
CuResult cuGraphGetNodes(CuGraph graph, void** nodes, std::size_t* count) {
  if (nodes) return kInvalidValue;
  *count = static_cast<std::size_t>(std::ranges::count_if(graph->nodes, [](const auto& node) { return !!node.work; }));
  return kCuSuccess;
}
CuResult cuGraphInstantiateWithFlags(CuGraphExec* executable, CuGraph graph, unsigned long long flags) {
  if (flags != 0) return kInvalidValue;
  *executable = new CuGraphExecState{graph->nodes};
  return kCuSuccess;
}
CuResult cuGraphDestroy(CuGraph graph) {
  delete graph;
  return kCuSuccess;
}
CuResult cuGraphLaunch(CuGraphExec executable, CuStream stream) {
  return withGpu([&](fake::Gpu& gpu) { return gpu.launch(*executable, stream); });
}
CuResult cuGraphExecDestroy(CuGraphExec executable) {
  delete executable;
  return kCuSuccess;
}
CuResult cuLaunchHostFunc(CuStream stream, CuHostFunction function, void* data) {
  return withGpu([&](fake::Gpu& gpu) -> CuResult {
    gpu.put(stream, [function, data]() -> CuResult {
      function(data);
      return kCuSuccess;
    });
    return kCuSuccess;
  });
}

CuResult cuEventCreate(CuEvent* event, unsigned) {
  return withGpu([&](fake::Gpu&) -> CuResult {
    *event = new CuEventState();
    return kCuSuccess;
  });
}
CuResult cuEventDestroy_v2(CuEvent event) {
  delete event;
  return kCuSuccess;
}
CuResult cuEventRecord(CuEvent event, CuStream stream) {
  return withGpu([&](fake::Gpu& gpu) { return gpu.record(stream, *event); });
}
CuResult cuEventElapsedTime(float* milliseconds, CuEvent begin, CuEvent end) {
  return withGpu([&](fake::Gpu&) -> CuResult {
    for (const CuEvent event : {begin, end})
      if (event->records->reached < event->records->recorded) return kCuNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end->records->when - begin->records->when).count();
    return kCuSuccess;
  });
}
CuResult cuEventQuery(CuEvent event) {
  return withGpu([&](fake::Gpu&) { return event->records->reached < event->records->recorded ? kCuNotReady : kCuSuccess; });
}
CuResult cuEventSynchronize(CuEvent event) {
  return withGpu([&](fake::Gpu& gpu) {
    return gpu.observed(fake::Waited::kForEvent,
                        [&] { return gpu.runUntil([&] { return event->records->reached >= event->records->recorded; }); });
  });
}

}  // extern "C"
#pragma GCC visibility pop
