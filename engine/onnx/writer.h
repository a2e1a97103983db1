// Writes a graph of any stage as an ONNX file that `loadModel` reads back to the same graph.
//
// Initializers, states and constants with their contents; removed nodes (they are sources of others), phases, predicates,
// provenance and state updates as metadata_props named "stepscope.*", which other readers ignore. Every domain in use is
// imported: "" in the newest version that a node is written in, others as Graph::opsets says, else 1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/ir/graph.h"

namespace stepscope {

struct WriteOptions {
  // Weights go to a second file when all of them together are larger. The largest protobuf message is 2 GiB.
  std::int64_t externalAbove = (std::int64_t{2} << 30) - (std::int64_t{64} << 20);
  // Name of that file, in the same folder; empty: "<stem of the path>.weights".
  std::string externalName;
  std::string producer = "stepscope";
};

// The file appears whole or not at all (temporary file, fsync, rename); a link at `path` is replaced, not followed.
// State without data starts as zeros: states of one size share a stretch of a file "<stem of the path>.zeros", which takes
// no room on disk. Initializers without data (weights that were missing) are written as external data that is not there, so
// the file opens with LoadOptions::MissingWeights::kRandom again. Errors: kIo; kInvalidArgument for a graph with unresolved
// attribute references or state of unknown shape; kLimitExceeded when the graph without weights passes 2 GiB.
Status writeModel(const Graph& graph, const std::filesystem::path& path, const WriteOptions& options = {});

}  // namespace stepscope
