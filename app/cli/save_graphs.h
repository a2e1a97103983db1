// --save-graphs: every stage of a build as an ONNX file, "03-infer.onnx".
#pragma once

#include <filesystem>

#include "engine/train/session.h"

namespace stepscope::cli {

Status saveGraphs(const Session& session, const std::filesystem::path& folder);

}  // namespace stepscope::cli
