// What is known about a run when it begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/snapshot/run.pb.h"

namespace stepscope::storage {

struct RunInfo {
  std::string name;  // shown for the run; empty = the model's file name
  std::string modelPath;
  std::string commandLine;         // empty when started from the window
  std::string device = "cpu";      // of the option of this name, where `options` has it
  std::string precision = "fp32";  // the same
  int threads = 1;
  std::int64_t seed = 0;
  std::string optimizer;
  std::string lossName;
  std::string weights = "from the model";  // "random, external data is missing (seed 0)" …
  snapshot::ModelInfo model;
  snapshot::MachineInfo machine;
  std::vector<snapshot::Option> options;
};

}  // namespace stepscope::storage
