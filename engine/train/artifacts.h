// A training as files for programs that run it elsewhere: three graphs without state between them, and what they start from.
//
//   training.onnx            the batch → loss, and the gradient of every trained parameter, "<parameter>_grad"
//   evaluation.onnx          the batch → loss, as the model is used: Dropout hands on, statistics are the running ones
//   optimizer.onnx           gradients, parameters, optimizer state, "learning_rate", "update" (from 1)
//   →
//                            their next contents; nothing is stored in it
//   checkpoint.safetensors   parameters, statistics, optimizer state, counters
//   artifacts.json           which value is which, extents, and the ops that Stepscope alone has, by file
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/train/session.h"

namespace stepscope {

struct Artifacts {
  std::vector<std::filesystem::path> files;             // in the order above
  std::size_t trained = 0;                              // parameters
  std::map<std::string, std::set<std::string>> ownOps;  // by file: those that other programs do not know
};

// Writes `folder`, which is created; files of these names are replaced, each whole or not at all. Weights stand in training
// and evaluation.onnx, above 2 GiB in a file beside each. `nominal`: no file has the contents of a parameter, and there is
// no checkpoint: its owner brings them. The graphs are those of the session's build: without its passes they hold public ops
// as far as gradients do. Errors: kNotFound before a build; kUnsupported where the loss is evaluated in another way than
// trained; those of writing.
Result<Artifacts> writeArtifacts(const Session& session, const std::filesystem::path& folder, bool nominal);

}  // namespace stepscope
