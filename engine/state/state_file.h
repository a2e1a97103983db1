// The state as a .safetensors file: parameters, optimizer state, counters.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "engine/data/safetensors.h"
#include "engine/state/property_bag.h"
#include "engine/state/state.h"

namespace stepscope {

// Tensors under their names, counters in the metadata ("stepscope.step", "stepscope.updates" …), properties as
// property_bag.h says. `late`: as writeSafetensors has it.
Status saveStateFile(const std::filesystem::path& path, const std::map<std::string, TensorView>& tensors,
                     const StateCounters& counters, const PropertyBag& properties = {}, const LateContents& late = {});

// What a state file held.
struct StateNames {
  std::filesystem::path path;
  std::set<std::string> names;
  bool resumed = false;  // optimizer state and counters were asked for
  PropertyBag properties;
  // Of a round of accumulation in whose middle the file was saved, its micro steps that are done. Files of older builds do
  // not say how many it has in all, nor the loss scale that sums of gradients are multiplied by: taken is the dynamic one of
  // the file, 0: that of the run.
  std::int64_t micro = 0;
  bool roundUnknown = false, scaleUnknown = false;
  double scaleTaken = 0;
};

// Of optimizer state this process keeps part `rank` of `ranks` (kernels/rank_part.h), while files hold the whole.
struct StatePart {
  std::int64_t rank = 0, ranks = 1;
};

// Reads parameters of `imported` into the state; with `resume` also optimizer state and counters. Contents are read
// one tensor at a time. Nothing is changed on an error: a type that differs from the state's or the parameter's, counters
// that are missing or no numbers (kInvalidArgument); a newer version (kUnsupported); no name of the model (kNotFound). A
// file that cannot be read to its end (kIo) leaves the state with some of its tensors. Of optimizer state `part` is taken.
Result<StateNames> loadStateFile(const std::filesystem::path& path, bool resume, const Graph& imported, State& state,
                                 const StatePart& part = {});

}  // namespace stepscope
