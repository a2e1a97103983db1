#include "kernels/cuda_device/nvrtc.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "kernels/cuda_device/optional_library.h"

namespace stepscope::cuda {

Result<const Nvrtc*> Nvrtc::load() {
  static std::mutex mutex;
  static std::map<void*, Nvrtc> loaded;
  const std::lock_guard lock(mutex);
  SS_ASSIGN(void* const library, openLibrary("NVRTC", "STEPSCOPE_NVRTC",
                                             {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"}));
  if (const auto known = loaded.find(library); known != loaded.end()) return &known->second;
  Nvrtc found;
#define SS_NVRTC_FIND(member, symbol, parameters)                          \
  {                                                                        \
    SS_ASSIGN(void* const address, findSymbol(library, "NVRTC", #symbol)); \
    found.member = reinterpret_cast<NvrtcStatus(*) parameters>(address);   \
  }
  SS_NVRTC_FUNCTIONS(SS_NVRTC_FIND)
#undef SS_NVRTC_FIND
  return &(loaded[library] = found);
}

Result<std::vector<char>> Nvrtc::codeOf(const std::string& source, int major, int minor) const {
  NvrtcProgram program = nullptr;
  if (const NvrtcStatus made = create(&program, source.c_str(), "generated.cu", 0, nullptr, nullptr); made != 0)
    return unsupported(fmt::format("NVRTC: a program: status {}", made));
  const std::string architecture = fmt::format("--gpu-architecture=sm_{}{}", major, minor);
  const char* const options[] = {architecture.c_str(), "--std=c++17"};
  const NvrtcStatus compiled = compile(program, 2, options);
  std::size_t bytes = 0;
  std::vector<char> code;
  bool done = compiled == 0 && codeSize(program, &bytes) == 0 && bytes > 0;
  if (done) {
    code.resize(bytes);
    done = this->code(program, code.data()) == 0;
  }
  std::string said;
  if (!done && logSize(program, &bytes) == 0 && bytes > 1) {
    said.resize(bytes);
    if (log(program, said.data()) != 0) said.clear();
    said.resize(said.find_last_not_of(std::string_view(" \n\0", 3)) + 1);
  }
  destroy(&program);
  if (!done) return unsupported(fmt::format("NVRTC: status {}: {}", compiled, said));
  return code;
}

}  // namespace stepscope::cuda
