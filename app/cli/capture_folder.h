// A folder that stepscope_capture (plugins/torch) wrote: model.onnx, batches.npz, capture.json.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/build/options.h"

namespace stepscope::cli {

// The model's path. Data, loss and the parameters that are not trained are taken over where the user set nothing.
Result<std::filesystem::path> openCaptureFolder(const std::filesystem::path& folder, TrainOptions& options);

// PyTorch's loss of the first batch at the captured parameters, where the folder has one.
std::optional<double> capturedLoss(const std::filesystem::path& folder);

}  // namespace stepscope::cli
