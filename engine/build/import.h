// Phases load, check, inline, infer: from a file to the graph where every build starts.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "engine/build/build_log.h"
#include "engine/build/registry.h"
#include "engine/build/stage.h"
#include "engine/onnx/reader.h"
#include "engine/passes/infer.h"

namespace stepscope {

// Immutable once it is imported: builds copy the graph.
struct ImportedModel {
  std::shared_ptr<const Registry> registry;  // first: outlives what looks things up in it
  std::filesystem::path path;
  LoadOptions load;
  LoadedModel file;  // what the file says besides its graph, which was moved out
  Graph graph;
  std::unique_ptr<Inference> inference;  // of `graph`
  std::vector<Stage> stages;             // load, inline, infer
};

// `registry`: what the model and its builds know. On failure `problems` has every finding, the error the first, and the
// log's newest span the phase.
Result<std::shared_ptr<const ImportedModel>> importModel(const std::filesystem::path& path, const LoadOptions& load,
                                                         BuildLog& log, std::vector<Problem>* problems,
                                                         std::shared_ptr<const Registry> registry);

}  // namespace stepscope
