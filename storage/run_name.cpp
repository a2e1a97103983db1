#include "storage/run_name.h"

#include <fmt/format.h>

#include "storage/sqlite.h"

namespace stepscope::storage {

Status checkRunWritable(const Project& project, std::int64_t run) {
  if (!project.writable())
    return fail(ErrorCode::kReadOnly,
                fmt::format("project '{}': opened for reading; expected one opened for writing", project.path()));
  SS_STORE_ASSIGN(const std::int64_t there,
                  project.connection().integer(fmt::format("SELECT count(*) FROM runs WHERE id = {}", run)));
  if (there == 0)
    return fail(ErrorCode::kNotFound,
                fmt::format("run '{}': not in this project; expected one that `stepscope inspect` lists", run));
  return {};
}

Status nameRun(const Project& project, std::int64_t run, const std::string& name) {
  SS_STORE_TRY(checkRunWritable(project, run));
  SS_STORE_ASSIGN(Statement update, project.connection().prepare("UPDATE runs SET name = ? WHERE id = ?"));
  return update.bind(name, run).run();
}

}  // namespace stepscope::storage
