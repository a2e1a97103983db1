#include <fmt/format.h>

#include "app/cli/command.h"
#include "storage/project.h"
#include "storage/report/report.h"

namespace stepscope::cli {

Run addReport(CLI::App& parent) {
  auto* app = parent.add_subcommand("report", "write a report of a run: .html .json .csv .trace.json by extension");
  struct Arguments {
    std::string project, output;
    std::int64_t run = 0;
  };
  auto a = std::make_shared<Arguments>();
  app->add_option("PROJECT", a->project, "project file")->required();
  app->add_option("--run", a->run, "number of the run; 0 = the newest")->type_name("R");
  app->add_option("-o,--output", a->output, "file to write")->type_name("FILE")->required();
  return [a] {
    auto project = storage::Project::openReadOnly(a->project);
    if (!project) return fmt::print(stderr, "error: {}\n", project.error().message), kFailed;
    if (auto written = storage::writeReport(*project, a->run, a->output); !written) {
      fmt::print(stderr, "error: {}\n", written.error().message);
      return written.error().code == storage::ErrorCode::kInvalidArgument ? kUsage : kFailed;
    }
    fmt::print("{}\n", a->output);
    return kSuccess;
  };
}

}  // namespace stepscope::cli
