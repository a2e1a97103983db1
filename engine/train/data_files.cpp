#include "engine/train/data_files.h"

#include <fmt/format.h>

#include "engine/data/npy.h"
#include "engine/data/safetensors.h"
#include "engine/onnx/tensor_pb.h"

namespace stepscope {

Result<std::map<std::string, Tensor>> readDataFiles(const std::filesystem::path& path,
                                                    const std::vector<std::string>& inputNames) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return fail(ErrorCode::kIo,
                fmt::format("data '{}': not found; expected a .npz or .safetensors file or a directory", path.string()));
  if (std::filesystem::is_directory(path, error)) {
    std::map<std::string, Tensor> arrays;
    for (std::size_t k = 0; k < inputNames.size(); ++k) {
      const std::filesystem::path file = path / fmt::format("input_{}.pb", k);
      if (!std::filesystem::exists(file, error)) continue;
      SS_ASSIGN(auto tensor, readTensorFile(file));
      arrays[inputNames[k]] = std::move(tensor.tensor);
    }
    return arrays;
  }
  if (path.extension() == ".npz") return readNpz(path);
  if (path.extension() == ".safetensors") {
    SS_ASSIGN(auto file, readSafetensors(path));
    return std::move(file.tensors);
  }
  return invalid(fmt::format("data '{}': extension '{}'; expected .npz, .safetensors or a directory of input_*.pb",
                             path.string(), path.extension().string()));
}

}  // namespace stepscope
