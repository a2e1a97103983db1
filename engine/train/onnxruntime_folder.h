// Files of a training with ONNX Runtime (onnxruntime_artifacts.h) as a folder that trains here.
#pragma once

#include <filesystem>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

// Whether there is a "<prefix>training_model.onnx" with its "<prefix>checkpoint".
bool hasOnnxruntimeArtifacts(const std::filesystem::path& folder);

// Writes into `to`, which is created, what `stepscope train FOLDER` takes: model.onnx (the training model without its
// gradients, parameters and statistics inside), capture.json (loss, what is trained, the optimizer), state.safetensors where
// the optimizer has done updates, and optimizer.onnx where it is none of ours. Errors: kNotFound where a file is missing;
// kInvalidArgument for a nominal checkpoint or parameters that the model lacks; those of reading and writing.
Result<std::vector<std::filesystem::path>> readOnnxruntimeArtifacts(const std::filesystem::path& from,
                                                                    const std::filesystem::path& to);

}  // namespace stepscope
