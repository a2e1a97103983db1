// A folder that stepscope_capture (plugins/torch) wrote: model.onnx, batches.npz, capture.json, golden.safetensors. Cases of
// a corpus are such folders too: their case.json says with which options they are trained.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/build/options.h"
#include "engine/lab/golden_check.h"

namespace stepscope::cli {

// The model's path. Data, loss, the parameters that are not trained, and where a run was captured its optimizer, schedule
// and state are taken over where the user set nothing.
Result<std::filesystem::path> openCaptureFolder(const std::filesystem::path& folder, TrainOptions& options);

// What PyTorch's meaning lost on the way, in words for users. Errors: a damaged capture.json (kCorrupt).
Result<std::vector<std::string>> captureNotes(const std::filesystem::path& folder);

// What PyTorch computed, for `stepscope verify` and for train.
struct CapturedGolden {
  Golden golden;
  bool ofRun = false;                        // its losses are those of a run with the folder's options, not of one state
  std::map<std::string, Tensor> parameters;  // after `steps` steps of that run; may be empty
  std::int64_t steps = 0;
};

// Nothing where the folder has neither losses nor gradients. `options`: those of the run. Errors: a file that is damaged
// (kCorrupt, kInvalidArgument).
Result<std::optional<CapturedGolden>> readGolden(const std::filesystem::path& folder, const TrainOptions& options);

}  // namespace stepscope::cli
