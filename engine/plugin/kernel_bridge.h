// A kernel of a plugin as the engine knows kernels. With option plugin.check it works on copies of its operands, between
// zones of a known pattern: what it writes beside its outputs, or into an input, is an error. A kernel for "cuda" works on
// the operands themselves, which the emulator checks.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/plugin/plugin_library.h"
#include "kernels/kernel.h"
#include "kernels/library_code.h"

namespace stepscope {

// Stays where it is while a registry lists its entry; the library outlives it.
struct KernelBridge {
  KernelBridge(const PluginLibrary& library, const ssp_kernel& kernel, bool checking);
  KernelBridge(const KernelBridge&) = delete;
  KernelBridge& operator=(const KernelBridge&) = delete;

  const PluginLibrary& library;
  const ssp_kernel& kernel;
  const ssp_op& op;
  bool checking = false;
  std::string createLabel, runLabel, destroyLabel, partLabel;  // of the functions, as errors name them
  std::shared_ptr<const LibraryCode> code;                     // of a kernel for "cuda"; null on the CPU
  KernelEntry entry;                                           // `user` is the bridge

  std::span<const ssp_attr_info> schema() const { return {op.attrs, op.attr_count}; }
};

}  // namespace stepscope
