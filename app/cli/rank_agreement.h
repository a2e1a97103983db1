// Whether the ranks of a run were started for the same thing: options and model. Ranks that differ would wait for
// collectives that the others do not have, or train another thing each without a word.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/build/options.h"
#include "engine/comm/ranks.h"
#include "engine/ir/graph.h"

namespace stepscope::cli {

// What is compared, line by line: a name, and what stands for it.
using Lines = std::vector<std::pair<std::string, std::string>>;

// Options that were set, but for those that say where and how a rank runs (device, threads, memory, what it records), and
// for files, which may lie at other places on other machines.
Lines linesOf(const TrainOptions& options);
// Inputs, parameters and nodes of a model as it was imported.
Lines linesOf(const Graph& imported);

// All ranks come here. Error, on the ranks whose lines are not those of rank 0: kInvalidArgument, with the first that
// differs: "option 'optimizer' is 'adamw', rank 0 has 'sgd'; expected the same on all ranks".
Status sameOnAllRanks(Ranks& ranks, const std::string& what, const Lines& mine);

}  // namespace stepscope::cli
