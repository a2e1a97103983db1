#include <fmt/format.h>

#include <fstream>

#include "app/cli/command.h"
#include "app/cli/op_list_file.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/save_graphs.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/plan/stream_partition.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

Status writeStreams(const Session& session, const std::string& path) {
  SS_TRY(checkPlace("streams-out", path));
  std::ofstream file(path, std::ios::binary);
  file << streamPartitionText(streamsOf(session.stepper().plan(), session.runningGraph()));
  file.close();
  if (!file)
    return fail(ErrorCode::kIo, fmt::format("streams-out '{}': it cannot be written; expected a place for a file", path));
  return {};
}

}  // namespace

Command buildCommand() {
  struct Arguments {
    std::string model, saveGraphs, ops, streamsOut;
    bool json = false, recompute = false;
    SharedOptions shared;
  };
  auto a = std::make_shared<Arguments>();
  Command command{
      "build",
      "build the training step, phases load to bind; print the phase table",
      {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
       {"--recompute", &a->recompute,
        "judge what may be computed again: what each pattern saves and costs, and what budgets give"},
       {"--save-graphs", &a->saveGraphs, "write the graph after each phase as .onnx into this folder", "DIR"},
       {"--streams-out", &a->streamsOut,
        "write which stream each node runs on, for the option streams.partition (on a device that has streams)", "FILE"},
       {"--ops", &a->ops, "add the ops of this build to a list, for a small build of the programs (SS_OPS)", "FILE"},
       {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    auto options = a->shared.apply();
    auto session = openSession(a->model, *options, output, a->shared.mapWeights);
    if (!session) return report(session.error());
    Status built = prepare(**session, a->shared);
    if (built) built = (*session)->build();
    output.phaseTable((*session)->phases());
    // A failure still leaves the graphs up to the phase before it.
    if (!a->saveGraphs.empty())
      if (Status saved = saveGraphs(**session, a->saveGraphs); !saved) return report(saved.error());
    if (!built) return report(built.error());
    if (!a->ops.empty())
      if (Status listed = listOps(**session, a->ops); !listed) return report(listed.error());
    if (!a->streamsOut.empty())
      if (Status written = writeStreams(**session, a->streamsOut); !written) return report(written.error());
    if (a->recompute) {
      const auto judged = (*session)->lab().recompute(std::nullopt);
      if (!judged) return report(judged.error());
      output.recomputeReport(*judged);
    } else {
      output.recomputeTable((*session)->phases());
    }
    if (!a->json) {
      const auto plan = (*session)->planSnapshot();
      if (plan)
        say("{} instructions; arena {} (lower bound {}), persistent {}\n", plan->instructions_size(),
            units::bytes(plan->arena_bytes()), units::bytes(plan->lower_bound_bytes()),
            units::bytes(plan->persistent_bytes()));
    }
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
