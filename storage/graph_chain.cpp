#include "storage/graph_chain.h"

#include <fmt/format.h>

#include <vector>

#include "storage/blob.h"
#include "storage/queries.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 4;
constexpr std::size_t kLongestChain = 100;

}  // namespace

Result<snapshot::Graph> readGraph(const Project& project, std::int64_t run, const std::string& phase) {
  return readGraphOfBuild(project, run, phase, kAnyBuild);
}

Result<snapshot::Graph> readGraphOfBuild(const Project& project, std::int64_t run, const std::string& phase, int build) {
  SS_STORE_ASSIGN(Statement found,
                  project.connection().prepare(
                      "SELECT id FROM graphs WHERE run = ?1 AND (?2 = '' OR phase = ?2) AND (?3 < 0 OR build = ?3) "
                      "ORDER BY id DESC LIMIT 1"));
  found.bind(run, phase, build);
  if (!found.next()) {
    SS_STORE_TRY(found.status());
    return fail(ErrorCode::kNotFound, fmt::format("graph '{}' of run {}: not in the project", phase, run));
  }
  const std::int64_t id = found.integer(0);
  if (id == 0)  // as a base it means "none"
    return fail(ErrorCode::kCorrupt, fmt::format("graph '{}' of run {}: its id is 0; expected another", phase, run));
  const bool hasBase = project.schemaVersion() >= kFirstVersion;
  SS_STORE_ASSIGN(Statement row, project.connection().prepare(hasBase ? "SELECT data, base FROM graphs WHERE id = ?"
                                                                      : "SELECT data, 0 FROM graphs WHERE id = ?"));
  std::vector<std::string> chain;  // compressed, from the wanted graph to the one that stands alone
  for (std::int64_t at = id; at != 0;) {
    row.bind(at);
    if (!row.next() || chain.size() == kLongestChain) {
      SS_STORE_TRY(row.status());
      return fail(
          ErrorCode::kCorrupt,
          fmt::format(
              "graph '{}' of run {}: kept as the difference to graph {}, which is not there; expected one of the same build",
              phase, run, at));
    }
    chain.emplace_back(row.blob(0));
    const std::int64_t base = row.integer(1);
    if (base != 0 && base <= at)
      return fail(ErrorCode::kCorrupt,
                  fmt::format("graph {}: kept as the difference to graph {}; expected a later one", at, base));
    at = base;
    row.reset();
  }
  SS_STORE_ASSIGN(std::string message, decompress(chain.back()));
  chain.pop_back();
  for (; !chain.empty(); chain.pop_back()) {
    SS_STORE_ASSIGN(std::string earlier, decompressAfter(message, chain.back()));
    message = std::move(earlier);
  }
  snapshot::Graph graph;
  SS_STORE_TRY(parse(message, graph));
  return graph;
}

}  // namespace stepscope::storage
