#include "app/cli/op_list_file.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "engine/data/file.h"
#include "engine/data/limits.h"

namespace stepscope::cli {
namespace {

void addOps(const Graph& graph, std::set<std::string>& ops) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    ops.insert(node.domain.empty() ? node.op : node.domain + "." + node.op);
    for (const auto& [name, body] : node.subgraphs) addOps(*body, ops);
  }
}

}  // namespace

Status listOps(const Session& session, const std::filesystem::path& path) {
  if (!session.built()) return fail(ErrorCode::kNotFound, "list of ops: nothing is built");
  std::set<std::string> ops;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    SS_ASSIGN(const auto bytes, readWholeFile(path, limits::kTextBytes, "list of ops"));
    std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    for (std::string line; std::getline(lines, line);)
      if (!line.empty() && line[0] != '#') ops.insert(line);
  }
  for (const Stage& stage : session.plans().stages()) addOps(*stage.graph, ops);
  addOps(session.runningGraph(), ops);
  return writeTextFile(path, fmt::format("# {} ops, by stepscope build --ops\n{}\n", ops.size(), fmt::join(ops, "\n")));
}

}  // namespace stepscope::cli
