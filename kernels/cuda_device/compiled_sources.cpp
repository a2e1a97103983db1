#include "kernels/cuda_device/compiled_sources.h"

#include "kernels/generated_kernel.h"

namespace stepscope::cuda {

CompiledSources::~CompiledSources() {
  for (auto& [source, compiled] : known_)
    if (compiled.module) driver_.moduleUnload(compiled.module);
}

CuResult CompiledSources::find(std::string_view prelude, const std::string& source, bool mayCompile, CuFunction* function) {
  *function = nullptr;
  if (const auto known = known_.find(source); known != known_.end()) {
    *function = known->second.function;
    return kCuSuccess;
  }
  if (!mayCompile) return kCuSuccess;
  Compiled& compiled = known_[source];
  const auto nvrtc = Nvrtc::load();
  if (!nvrtc) {
    lacking_ = nvrtc.error().message;
    return kCuSuccess;
  }
  const auto code = (*nvrtc)->codeOf(std::string(prelude) + source, major_, minor_);
  if (!code) {
    lacking_ = code.error().message;
    return kCuSuccess;
  }
  CuResult result = driver_.moduleLoad(&compiled.module, code->data());
  // Code of a newer compiler than the driver knows: as if there were none.
  if (result == kCuNoBinaryForGpu || result == kCuInvalidImage || result == kCuUnsupportedPtx) {
    lacking_ = "NVRTC: " + driver_.describe(result) + "; expected a driver as new as this library";
    return kCuSuccess;
  }
  if (result == kCuSuccess) result = driver_.moduleFunction(&compiled.function, compiled.module, kGeneratedEntry);
  *function = compiled.function;
  return result;
}

}  // namespace stepscope::cuda
