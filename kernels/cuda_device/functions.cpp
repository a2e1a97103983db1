#include "kernels/cuda_device/functions.h"

#include <fmt/format.h>

namespace stepscope::cuda {

Functions::~Functions() {
  for (CuModule module : modules_) driver_.moduleUnload(module);
}

Status Functions::load(const std::vector<GpuCode>& code) {
  for (const GpuCode& one : code) {
    CuModule module = nullptr;
    const CuResult result = driver_.moduleLoad(&module, one.image.data());
    if (result != kCuSuccess) {
      const bool cannot = result == kCuNoBinaryForGpu || result == kCuUnsupportedPtx || result == kCuInvalidImage;
      return fail(cannot ? ErrorCode::kUnsupported : ErrorCode::kInternal,
                  fmt::format("GPU code '{}': {}; expected a driver that is as new as the toolkit of this build", one.file,
                              driver_.describe(result)));
    }
    modules_.push_back(module);
    for (const std::string& symbol : one.kernels) places_[kernelName(symbol)] = {module, symbol};
  }
  return {};
}

Result<CuFunction> Functions::find(const std::type_info& tag) {
  if (const auto known = found_.find(tag); known != found_.end()) return known->second;
  const std::string name = kernelName(tag);
  const auto place = places_.find(name);
  if (place == places_.end())
    return unsupported(fmt::format("kernel {}: not in the GPU code; expected code of the same sources", name));
  CuFunction function = nullptr;
  const CuResult result = driver_.moduleFunction(&function, place->second.module, place->second.symbol.c_str());
  if (result != kCuSuccess) return fail(ErrorCode::kInternal, fmt::format("kernel {}: {}", name, driver_.describe(result)));
  found_[tag] = function;
  return function;
}

}  // namespace stepscope::cuda
