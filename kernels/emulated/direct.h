// Launches that go to a GPU: the host side of a kernel (Launcher) is compiled once, and the device that launches the kernel
// decides whether operands become checked memory of the emulator or plain addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <typeinfo>

#include "kernels/space.h"
#include "kernels/status.h"

namespace stepscope::gpu {

// A kernel as a type. Its name holds the name that the compiler gives the kernel, which is how it is found in GPU code.
template <auto kKernel>
struct KernelTag {};

// A kernel: the function for the emulator, and its tag for a GPU.
template <typename... P>
struct KernelFunction {
  void (*entry)(P...) = nullptr;
  const std::type_info* tag = nullptr;
};
template <typename... P>
constexpr KernelFunction<P...> functionOf(void (*entry)(P...), const std::type_info* tag) {
  return {entry, tag};
}
// What Launcher::run takes: gpu::function<softmaxRows<true>>.
template <auto kKernel>
inline constexpr auto function = functionOf(kKernel, &typeid(KernelTag<kKernel>));

// One launch, with the values of its parameters as the GPU reads them.
struct DirectLaunch {
  const char* name;  // for people
  const std::type_info& tag;
  std::int64_t blocks = 0;
  int threads = 0;
  std::span<void*> parameters;  // addresses of the values; they are copied
  StreamId stream = 0;
};

// What a device with plain addresses does for the kernels that it runs.
class DirectLaunches {
 public:
  virtual ~DirectLaunches() = default;
  // Puts it on its stream. Errors: kUnsupported for a kernel that the GPU code lacks, kInternal from the driver.
  virtual Status launch(const DirectLaunch& launch) = 0;
  // Where the kernels of the next launch leave a complaint (kernels/cuda/complained.h); null with an error, which the launch
  // answers. `errorOf` makes an error of it when somebody waits.
  virtual Result<void*> complaint(std::function<Error(std::int64_t position, std::int64_t value)> errorOf) = 0;
};

// Of the device whose kernel puts its launches together in this thread; null: the emulator.
extern constinit thread_local DirectLaunches* directLaunches;

}  // namespace stepscope::gpu
