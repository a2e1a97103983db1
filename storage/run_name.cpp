#include "storage/run_name.h"

#include <fmt/format.h>

#include "storage/sqlite.h"

namespace stepscope::storage {

Status nameRun(const Project& project, std::int64_t run, const std::string& name) {
  if (!project.writable())
    return fail(ErrorCode::kReadOnly,
                fmt::format("project '{}': opened for reading; expected one opened for writing", project.path()));
  const Connection& connection = project.connection();
  SS_STORE_ASSIGN(const std::int64_t there, connection.integer(fmt::format("SELECT count(*) FROM runs WHERE id = {}", run)));
  if (there == 0)
    return fail(ErrorCode::kNotFound,
                fmt::format("run '{}': not in this project; expected one that `stepscope inspect` lists", run));
  SS_STORE_ASSIGN(Statement update, connection.prepare("UPDATE runs SET name = ? WHERE id = ?"));
  return update.bind(name, run).run();
}

}  // namespace stepscope::storage
