// build --ops: which ops a small build of the programs needs (CMake's SS_OPS).
#pragma once

#include <filesystem>

#include "engine/train/session.h"

namespace stepscope::cli {

// Adds the ops of every stage of the build and of its plan to `path`, a line each ("Add", "com.microsoft.Gelu"), sorted,
// each once; lines that are there stay, so that one file lists the ops of several models and options. Errors: kNotFound
// before a build; those of reading and writing.
Status listOps(const Session& session, const std::filesystem::path& path);

}  // namespace stepscope::cli
