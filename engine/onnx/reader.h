// Opens ONNX models from anywhere: counts before it parses, checks everything, reads what is sound.
//
// How the graph looks after reading:
//  - Initializers are values of role kInitializer (kState or kConstant in a saved stage) that share an immutable Tensor; one
//    that is also listed as an input is an initializer, and not in inputs().
//  - Constant nodes stay nodes; whatever form their value had, it is the attribute `value`.
//  - Subgraphs hang in Node::subgraphs. Their inputs() are the formal inputs (a branch of If has none), then one value of
//    role kInput for every value of an enclosing graph that they use, under the same name. Inner graphs list theirs
//    likewise, so a value used two levels down is an input of both.
//  - Node::sinceVersion is the opset version of the node's domain in the model or function that contains it (for a saved
//    stage: what the node had). Of node outputs only those that are graph outputs have their declared type; what the file
//    declares of others is in LoadedModel::valueInfo.
//  - Every node has provenance: pass "import", its own id as `imported`, module path and Python source where recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/function.h"
#include "engine/onnx/problem.h"
#include "kernels/cancel.h"

namespace stepscope {

struct LoadOptions {
  enum class MissingWeights {
    kError,   // an external file that is not there is an error
    kRandom,  // its initializers stay without data and are listed in LoadedModel::missingWeights
  };
  MissingWeights missingWeights = MissingWeights::kError;
  bool readWeights = true;  // false: external data is not even opened, its initializers stay without data (not "missing")
  std::int64_t loopIterations = 128;  // most iterations of a loop whose number is computed (passes/predicate_loops.h)
  bool mapWeights = false;  // external data is mapped, not read (ExternalAccess::kMap): the files must stay as they are
  // Folders besides the model's own that external data may lie in, allowed by the user.
  std::vector<std::filesystem::path> searchPaths;
  Cancel cancel = {};  // looked at between nodes and between weights: kCancelled
};

// Something odd in the file that does not stop the load: where it is, and what.
struct LoadWarning {
  std::string where;
  std::string message;
};

struct LoadedModel {
  Graph graph;
  std::vector<Function> functions;
  int irVersion = 0;
  std::string producer;  // name and version
  std::map<std::string, int> opsets;
  std::int64_t fileBytes = 0;
  std::int64_t externalBytes = 0;  // read from external files
  std::vector<std::filesystem::path> externalFiles;
  std::int64_t weightsBegan = 0, weightsNs = 0,
               weightsRead = 0;  // contents of initializers: when on CLOCK_MONOTONIC, how long, how many
  std::vector<LoadWarning> warnings;
  std::vector<std::string> missingWeights;
  std::map<std::string, ValueType> valueInfo;  // declared types of values, inputs and outputs included
  std::map<std::string, std::string> metadata;
};

// Reads a file. On failure the error tells the first problems; all of them go to `problems` when it is given.
Result<LoadedModel> loadModel(const std::filesystem::path& path, const LoadOptions& options = {},
                              std::vector<Problem>* problems = nullptr);

// The same for bytes in memory; external data is looked for in `folder`.
Result<LoadedModel> parseModel(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                               const LoadOptions& options = {}, std::vector<Problem>* problems = nullptr);

}  // namespace stepscope
