#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_project.h"
#include "app/cli/terminal.h"
#include "storage/report/report.h"

namespace stepscope::cli {

Command reportCommand() {
  struct Arguments {
    std::string project, output;
    std::int64_t run = 0;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"report",
                  "write a report of a run: .html .txt .json .csv .trace.json by extension",
                  {{"PROJECT", &a->project, "project file", {}, true},
                   {"--run", &a->run, "number of the run; 0 = the newest", "R"},
                   {"-o,--output", &a->output, "file to write", "FILE", true},
                   {"--json", &a->json, "one JSON object: the file that was written"}}};
  command.run = [a] {
    const auto project = openProject(a->project);
    if (!project) return kFailed;
    if (auto written = storage::writeReport(*project, a->run, a->output); !written) {
      tellError(written.error().message);
      return written.error().code == storage::ErrorCode::kInvalidArgument ? kUsage : kFailed;
    }
    if (a->json)
      sayJson({{"event", "report"}, {"path", a->output}});
    else
      say("{}\n", a->output);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
