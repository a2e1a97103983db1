// `stepscope policy`: what a run computes again, for torch.utils.checkpoint.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_project.h"
#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "storage/pytorch/checkpoint_policy.h"
#include "storage/queries.h"

namespace stepscope::cli {

Command policyCommand() {
  struct Arguments {
    std::string project, output;
    std::int64_t run = 0;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  Command command{
      "policy",
      "what a run computes again (recompute.plan, recompute.budget) as a policy of torch.utils.checkpoint: modules and "
      "operators; stepscope.apply_checkpoint_policy(model, FILE) in Python applies it",
      {{"PROJECT", &a->project, "project file", {}, true},
       {"--run", &a->run, "number of the run [the newest]", "N"},
       {"-o,--output", &a->output, "file to write the policy to, JSON", "FILE"},
       {"--json", &a->json, "one JSON object per line: every module"}}};
  command.run = [a] {
    const auto project = openProject(a->project);
    if (!project) return kFailed;
    const auto newest = a->run != 0 ? storage::Result<std::int64_t>(a->run) : storage::newestRun(*project);
    if (!newest) return tellError(newest.error().message);
    const auto run = storage::readRun(*project, *newest);
    if (!run) return tellError(run.error().message);
    const auto policy = storage::checkpointPolicy(*project, *newest);
    if (!policy) return tellError(policy.error().message);
    if (!a->output.empty()) {
      std::ofstream file(a->output, std::ios::binary);
      file << storage::checkpointPolicyJson(*policy, run->modelPath, *newest);
      file.close();
      if (!file) return tellError(fmt::format("file '{}': cannot be written", a->output));
    }
    std::vector<std::vector<std::string>> rows;
    for (const storage::CheckpointEntry& entry : policy->modules) {
      const std::string operators = fmt::format("{}", fmt::join(entry.operators, " "));
      rows.push_back({entry.module, operators.empty() ? "(all)" : operators, fmt::format("{}", entry.nodes)});
      if (a->json)
        sayJson(
            {{"event", "policy_module"}, {"module", entry.module}, {"operators", entry.operators}, {"nodes", entry.nodes}});
    }
    if (a->json) {
      sayJson({{"event", "policy"},
               {"run", *newest},
               {"modules", policy->modules.size()},
               {"left_out", policy->leftOut},
               {"file", a->output}});
      return kSuccess;
    }
    say("{}", table({"module", "operators", "nodes"}, rows, 2));
    if (!policy->leftOut.empty()) say("left out, of no module: {}\n", fmt::format("{}", fmt::join(policy->leftOut, ", ")));
    if (!a->output.empty()) say("{}\n", a->output);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
