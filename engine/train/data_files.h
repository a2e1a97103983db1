// Arrays of the three kinds of data path: .npz, .safetensors, and a directory of input_*.pb (ONNX test data).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/tensor.h"

namespace stepscope {

// Arrays by name. A directory's input_<k>.pb belongs to inputNames[k] when the file itself carries no name.
Result<std::map<std::string, Tensor>> readDataFiles(const std::filesystem::path& path,
                                                    const std::vector<std::string>& inputNames);

}  // namespace stepscope
