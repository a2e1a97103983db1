#include "app/cli/open_project.h"

#include "app/cli/terminal.h"

namespace stepscope::cli {

std::optional<storage::Project> openProject(const std::string& path) {
  auto project = storage::Project::openReadOnly(path);
  if (!project) {
    tellError(project.error().message);
    return std::nullopt;
  }
  for (const std::string& warning : project->warnings()) tellWarning("project", warning);
  return std::move(*project);
}

}  // namespace stepscope::cli
