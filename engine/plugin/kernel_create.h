// What `create` of a plugin's kernel makes for one node.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/plugin/kernel_bridge.h"

namespace stepscope {

struct KernelInstance {
  explicit KernelInstance(const KernelBridge& owner) : bridge(owner) {}
  ~KernelInstance();
  KernelInstance(const KernelInstance&) = delete;
  KernelInstance& operator=(const KernelInstance&) = delete;

  const KernelBridge& bridge;
  void* handle = nullptr;
  bool made = false;  // destroy is called
  std::uint64_t scratch = 0;
  Determinism determinism;
  bool cannotFail = false;
};

// Errors: kUnsupported where the kernel does not take the operands; what the plugin says; kCorrupt for what is against the
// contract.
Result<std::unique_ptr<KernelInstance>> createInstance(const KernelBridge& bridge, const KernelSpec& spec);

}  // namespace stepscope
