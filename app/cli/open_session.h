// Opens a model for `build`, `train`, `run` and `inspect`: problems printed with their places, alerts and phases as they
// come.
#pragma once

#include <functional>
#include <memory>

#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "engine/train/session.h"

namespace stepscope::cli {

using Progress = std::function<void(const std::string& what, std::int64_t done, std::int64_t total)>;

// `model` may be a folder that stepscope_capture wrote; options that it brings and the user did not set are taken over.
// `progress`: of what takes long; may be null.
Result<std::unique_ptr<Session>> openSession(const std::string& model, TrainOptions& options, const Output& output,
                                             bool mapWeights = false, Progress progress = {});

// --init-from and --resume.
Status prepare(Session& session, const SharedOptions& shared);

}  // namespace stepscope::cli
