// What a session tells of a state that was loaded and of breakpoints, once a plan is there to compare them with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/build/builder.h"
#include "engine/state/state_file.h"
#include "engine/step/step_context.h"

namespace stepscope {

// What is trained and not in the file keeps the model's contents, and optimizer state begins with zeros: a run that is not
// what its user believes, unless it is told. Once for a file: `loaded` is empty afterwards.
void tellWhatTheFileLacks(std::optional<StateNames>& loaded, const SymbolicStep& step, BuildLog& log);

// Says of enabled conditions why they stop nowhere: the graph does not have the value, or no instruction writes it (inputs,
// constants, parameters that are not trained). `reads`: those are tested where they are read.
std::vector<std::string> idlePredicates(const std::vector<snapshot::Breakpoint>& breakpoints, const Graph& graph,
                                        bool reads);
void tellOfIdlePredicates(const std::vector<snapshot::Breakpoint>& breakpoints, const Graph& graph, BuildLog& log);

}  // namespace stepscope
