#include "kernels/cuda_device/library_functions.h"

#include <fmt/format.h>

namespace stepscope::cuda {

LibraryFunctions::~LibraryFunctions() {
  for (auto& [code, loaded] : known_)
    if (loaded.module) driver_.moduleUnload(loaded.module);
}

void LibraryFunctions::dropGone() {
  std::erase_if(known_, [&](const auto& one) {
    if (!one.second.code.expired()) return false;
    if (one.second.module) driver_.moduleUnload(one.second.module);
    return true;
  });
}

Status LibraryFunctions::load(const LibraryCode& code, Loaded& loaded) {
  if (code.image.empty()) return unsupported(code.owner + ": has no GPU code; expected an image, or --device emulated");
  const CuResult result = driver_.moduleLoad(&loaded.module, code.image.data());
  if (result == kCuNoBinaryForGpu || result == kCuUnsupportedPtx)
    return unsupported(fmt::format("{}: its image has no code for this GPU: {}", code.owner, driver_.describe(result)));
  if (result == kCuInvalidImage)
    return fail(ErrorCode::kCorrupt, fmt::format("{}: the driver does not take its image of {} bytes: {}; expected a fat "
                                                 "binary, a cubin or PTX",
                                                 code.owner, code.image.size(), driver_.describe(result)));
  if (result != kCuSuccess)
    return fail(ErrorCode::kInternal, fmt::format("{}: loading its image: {}", code.owner, driver_.describe(result)));
  for (const LibraryFunction& function : code.functions) {
    CuFunction found = nullptr;
    if (const CuResult answer = driver_.moduleFunction(&found, loaded.module, function.name.c_str()); answer != kCuSuccess)
      return fail(answer == kCuNotFound ? ErrorCode::kCorrupt : ErrorCode::kInternal,
                  fmt::format("{}: function '{}': {}; expected it in the image, with C linkage", code.owner, function.name,
                              answer == kCuNotFound ? "not in the image" : driver_.describe(answer)));
    loaded.functions.push_back(found);
  }
  return {};
}

Result<std::span<const CuFunction>> LibraryFunctions::of(const std::shared_ptr<const LibraryCode>& code, bool mayLoad) {
  auto known = known_.find(code.get());
  if (known == known_.end() || known->second.code.expired()) {
    if (!mayLoad) return fail(ErrorCode::kInternal, code->owner + ": its image was not loaded before a graph was captured");
    dropGone();
    Loaded loaded;
    loaded.code = code;
    loaded.status = load(*code, loaded);
    known = known_.emplace(code.get(), std::move(loaded)).first;
  }
  if (!known->second.status) return tl::make_unexpected(known->second.status.error());
  return std::span<const CuFunction>(known->second.functions);
}

}  // namespace stepscope::cuda
