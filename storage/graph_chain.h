// Graphs of a build: the newest stands alone, each one before is its difference to the one after it.
//
// As queries.h: contents untrusted.
#pragma once

#include <cstdint>
#include <string>

#include "engine/snapshot/graph.pb.h"
#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

inline constexpr int kAnyBuild = -1;

// As readGraph, of one build of the run. Errors: kNotFound where it has none; kCorrupt; database errors.
Result<snapshot::Graph> readGraphOfBuild(const Project& project, std::int64_t run, const std::string& phase, int build);

}  // namespace stepscope::storage
