// Opens a model for `build`, `train`, `run` and `inspect`: problems printed with their places, alerts and phases as they
// come.
#pragma once

#include <memory>

#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "engine/train/session.h"

namespace stepscope::cli {

// `model` may be a folder that stepscope_capture wrote; options that it brings and the user did not set are taken over.
Result<std::unique_ptr<Session>> openSession(const std::string& model, TrainOptions& options, const Output& output,
                                             bool mapWeights = false);

// --init-from and --resume.
Status prepare(Session& session, const SharedOptions& shared);

}  // namespace stepscope::cli
