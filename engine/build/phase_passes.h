// The passes of one phase as spans of the log: each has its time and its report.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/build/build_log.h"
#include "engine/build/options.h"
#include "engine/build/stage.h"
#include "engine/onnx/reader.h"
#include "engine/passes/pipeline.h"

namespace stepscope {

// What every pass of a build is told. `log`: of roofs that had to be found.
PassContext passContext(const LoadedModel& file, const TrainOptions& options, int threads, Inference& inference,
                        BuildLog& log);

// Runs the passes of phase `list`, those that the options switch on; warnings become alerts. `effects` gets a line for each
// option "pass.<name>"; `stages` the graph after each pass that changed it. The error is that of the pass.
Status runPhasePasses(const PassList& list, const TrainOptions& options, Graph& graph, PassContext& context, BuildLog& log,
                      std::map<std::string, std::string>& effects, std::vector<Stage>& stages);

// Fills `report` with what a pass found and how many nodes it made of how many.
void writePassReport(snapshot::PassReport& report, std::string_view name, const PassResult& result, std::size_t nodesBefore,
                     std::size_t nodesAfter);

}  // namespace stepscope
