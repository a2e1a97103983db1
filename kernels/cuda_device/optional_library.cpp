#include "kernels/cuda_device/optional_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace stepscope::cuda {

Result<void*> openLibrary(const char* title, const char* variable, std::initializer_list<const char*> names) {
  const char* const ordered = std::getenv(variable);
  const std::string name = ordered ? ordered : "";
  if (name == "off") return unsupported(fmt::format("{} is switched off ({}=off)", title, variable));
  void* library = nullptr;
  if (!name.empty()) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  } else {
    for (const char* candidate : names)
      if (!library) library = dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) return unsupported(fmt::format("no {} on this machine ({})", title, name.empty() ? *names.begin() : name));
  return library;
}

Result<void*> findSymbol(void* library, const char* title, const char* symbol) {
  void* const found = dlsym(library, symbol);
  if (!found) return unsupported(fmt::format("{} has no {}; expected that of CUDA 12 or 13", title, symbol));
  return found;
}

}  // namespace stepscope::cuda
