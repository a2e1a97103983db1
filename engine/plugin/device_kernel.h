// A kernel of a plugin for "cuda", as the engine knows kernels: what it launches goes to the device whose kernel runs in the
// thread, a GPU or the emulator.
#pragma once

#include <memory>

#include "engine/plugin/kernel_bridge.h"
#include "plugins/abi/stepscope_device.h"

namespace stepscope {

// The functions and the image that the kernel lists; null for one of the CPU.
std::shared_ptr<const LibraryCode> libraryCodeOf(const PluginLibrary& library, const ssp_kernel& kernel);

// Errors: kUnsupported for operands without elements or with extents that only a step knows, which go to the CPU; those of
// createInstance(); kCorrupt for one whose bits depend on random numbers.
Result<std::unique_ptr<Kernel>> makeDeviceKernel(const KernelBridge& bridge, const KernelSpec& spec);

// What bodies of device functions ask the emulator.
const ssp_emulator& emulatorTable();

}  // namespace stepscope
