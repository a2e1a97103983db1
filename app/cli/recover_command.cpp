#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "storage/salvage.h"

namespace stepscope::cli {

Command recoverCommand() {
  struct Arguments {
    std::string project, output;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"recover",
                  "what can be read of a damaged project, as a new project",
                  {{"PROJECT", &a->project, "project file, damaged", {}, true},
                   {"-o,--output", &a->output, "project to write; there must be no such file", "NEW", true},
                   {"--json", &a->json, "one JSON object per line"}}};
  command.run = [a] {
    const auto result = storage::recoverProject(a->project, a->output);
    if (!result) return tellError(result.error().message);
    std::vector<std::vector<std::string>> rows;
    for (const storage::SalvagedTable& table : result->tables) {
      if (a->json)
        sayJson({{"event", "table"},
                 {"name", table.name},
                 {"rows", table.rows},
                 {"complete", table.whyIncomplete.empty()},
                 {"gaps", table.gaps.size()}});
      rows.push_back(
          {table.name, std::to_string(table.rows),
           table.whyIncomplete.empty() ? "complete" : fmt::format("{}, {} gaps", table.whyIncomplete, table.gaps.size())});
    }
    if (a->json) {
      for (const std::string& missing : result->missing()) tellWarning("missing", missing);
      sayJson({{"event", "done"}, {"complete", result->complete()}, {"project", a->output}});
    } else {
      say("{}", table({"table", "rows", "read"}, rows));
      say("{}\n", a->output);
      for (const std::string& missing : result->missing()) tellWarning("missing", missing);
    }
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
