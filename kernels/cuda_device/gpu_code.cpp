#include "kernels/cuda_device/gpu_code.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include "kernels/cuda_device/embedded_code.h"

namespace stepscope::cuda {
namespace {

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    if (to > from) lines.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return lines;
}

Result<std::vector<char>> contentsOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file || bytes.empty())
    return fail(ErrorCode::kIo, fmt::format("GPU code '{}': empty or not readable", path.string()));
  return bytes;
}

Result<std::vector<GpuCode>> codeIn(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".fatbin") files.push_back(entry.path());
  if (error || files.empty())
    return unsupported(fmt::format("STEPSCOPE_GPU_CODE '{}': no .fatbin files; expected a folder of them", folder.string()));
  std::ranges::sort(files);
  std::vector<GpuCode> code;
  for (std::filesystem::path& file : files) {
    GpuCode& added = code.emplace_back();
    added.file = file.stem().string();
    SS_ASSIGN(added.image, contentsOf(file));
    SS_ASSIGN(const std::vector<char> names, contentsOf(file.replace_extension(".names")));
    added.kernels = linesOf({names.data(), names.size()});
  }
  return code;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : "";
}

// "void a::f<(B)0>(int)" and "a::f<(B)0>" → "a::f<(B)0>".
std::string withoutSignature(std::string_view text) {
  constexpr std::string_view kResult = "void ";
  if (text.starts_with(kResult)) text.remove_prefix(kResult.size());
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
    if (text[i] == '(' && depth == 0) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

}  // namespace

Result<std::vector<GpuCode>> gpuCode() {
  if (const char* const folder = std::getenv("STEPSCOPE_GPU_CODE"); folder && *folder) return codeIn(folder);
  std::vector<GpuCode> code;
  for (const EmbeddedCode& embedded : embeddedCode())
    code.push_back({embedded.file, {embedded.begin, embedded.end}, linesOf({embedded.names, embedded.after})});
  if (code.empty()) return unsupported("not available in this build, whose CUDA kernels run with --device emulated");
  return code;
}

std::string kernelName(const std::string& symbol) {
  const std::string name = demangled(symbol.c_str());
  // A name of a tag stands for its kernel too.
  constexpr std::string_view kTag = "stepscope::gpu::KernelTag<&";
  if (!name.starts_with(kTag)) return withoutSignature(name);
  std::string_view inner = std::string_view(name).substr(kTag.size());
  inner.remove_suffix(1);
  if (inner.starts_with('(')) inner = inner.substr(1, inner.size() - 2);
  return withoutSignature(inner);
}

std::string kernelName(const std::type_info& tag) { return kernelName(std::string(tag.name())); }

}  // namespace stepscope::cuda
