#include <fmt/format.h>

#include "app/cli/command.h"
#include "storage/project.h"
#include "storage/report/report.h"

namespace stepscope::cli {

Command reportCommand() {
  struct Arguments {
    std::string project, output;
    std::int64_t run = 0;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"report",
                  "write a report of a run: .html .json .csv .trace.json by extension",
                  {{"PROJECT", &a->project, "project file", {}, true},
                   {"--run", &a->run, "number of the run; 0 = the newest", "R"},
                   {"-o,--output", &a->output, "file to write", "FILE", true}}};
  command.run = [a] {
    auto project = storage::Project::openReadOnly(a->project);
    if (!project) return fmt::print(stderr, "error: {}\n", project.error().message), kFailed;
    if (auto written = storage::writeReport(*project, a->run, a->output); !written) {
      fmt::print(stderr, "error: {}\n", written.error().message);
      return written.error().code == storage::ErrorCode::kInvalidArgument ? kUsage : kFailed;
    }
    fmt::print("{}\n", a->output);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
