// The trained model as an ONNX file for other programs: weights and running statistics of now, Dropout and
// BatchNormalization as in evaluation, without the loss and what only it needs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/train/session.h"

namespace stepscope {

struct ExportedModel {
  std::vector<std::string> outputs;  // that the file has
  std::size_t weights = 0;           // whose contents are those of the training
};

// Writes `path`, whole or not at all. Functions are inlined and every node is written in the internal opset
// (kInternalOpset). Outputs are those of the model but the loss; where the loss is the only one, the scores that it reads.
// Branches are bodies of If again (engine/passes/raise_if.h).
// Errors: kUnsupported where the file would need ops of our own (loops are written out with them), where somebody
// reads the mask of a Dropout or a statistic, or where the loss is the only output and no cross entropy; those of
// writeModel.
Result<ExportedModel> exportInference(const Session& session, const std::filesystem::path& path);

}  // namespace stepscope
