// Models that must be refused, with the error that each must give.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {

struct BrokenModel {
  std::string name;
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string text;                    // that the message contains
  std::function<std::string()> bytes;  // of the model file
};

inline void PrintTo(const BrokenModel& model, std::ostream* out) { *out << model.name; }

std::vector<BrokenModel> brokenModels();

// What the external data cases refer to: in <folder>/model a file of 64 bytes, a folder, a pipe, a link to a file outside.
void prepareExternalFiles(const TemporaryFolder& folder);

// Parts of the list.
void addBrokenBytes(std::vector<BrokenModel>& models);
void addBrokenGraphs(std::vector<BrokenModel>& models);
void addBrokenTensors(std::vector<BrokenModel>& models);
void addBrokenBodies(std::vector<BrokenModel>& models);  // attributes, subgraphs, functions

}  // namespace stepscope::testing
