// A training as the files that a training build of ONNX Runtime runs. The way back is onnxruntime_folder.h.
//
//   training_model.onnx    batch, parameters, sums of gradients, "lazy_reset_grad" → loss, other outputs, a flag for each
//   sum eval_model.onnx        batch, parameters → loss, other outputs optimizer_model.onnx
//   engine/onnx/onnxruntime_optimizer.h checkpoint             engine/data/onnxruntime_checkpoint.h
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/train/session.h"

namespace stepscope {

struct OnnxruntimeFiles {
  std::vector<std::filesystem::path> files;
  std::size_t trained = 0;         // parameters
  std::vector<std::string> notes;  // what the other program does otherwise, in words for users
};

// Writes these four files into `folder`, which is created. Parameters that are not trained stay in the models. Errors:
// kNotFound before a build; kUnsupported, with the option at fault, for an update that it has no op for (momentum, lamb,
// groups, weight decay of sgd or adam), and for gradients that it has none for; those of writing.
Result<OnnxruntimeFiles> writeOnnxruntimeArtifacts(const Session& session, const std::filesystem::path& folder);

}  // namespace stepscope
