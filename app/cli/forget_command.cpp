#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"
#include "storage/retention.h"

namespace stepscope::cli {

Command forgetCommand() {
  struct Arguments {
    std::string project;
    std::int64_t run = 0;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"forget",
                  "take a run out of a project and give its space back",
                  {{"PROJECT", &a->project, "project file", {}, true},
                   {"RUN", &a->run, "number of the run (stepscope inspect PROJECT lists them)", {}, true},
                   {"--json", &a->json, "one JSON object per line"}}};
  command.run = [a] {
    std::error_code error;
    const auto bytes = [&] {
      const auto size = std::filesystem::file_size(a->project, error);
      return error ? std::int64_t{0} : static_cast<std::int64_t>(size);
    };
    if (!std::filesystem::is_regular_file(a->project, error))
      return tellError(fmt::format("project '{}': no such file; expected a .stepscope file", a->project));
    const std::int64_t before = bytes();
    {
      const auto project = storage::Project::openForWriting(a->project);
      if (!project) return tellError(project.error().message);
      if (const auto deleted = storage::deleteRun(*project, a->run); !deleted) return tellError(deleted.error().message);
    }
    const std::int64_t freed = before - bytes();
    if (a->json)
      sayJson({{"event", "done"}, {"run", a->run}, {"bytes_freed", freed}});
    else
      say("run {} is gone; the project is {} smaller\n", a->run, units::bytes(std::max<std::int64_t>(0, freed)));
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
