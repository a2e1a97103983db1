#include "storage/verdicts.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 4;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of one list of nodes

}  // namespace

std::vector<Verdict> groupVerdicts(const std::vector<snapshot::Determinism>& nodes) {
  std::vector<Verdict> out;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const snapshot::Determinism& node : nodes) {
    const auto [at, isNew] = places.try_emplace({node.verdict(), node.reason()}, out.size());
    if (isNew) out.push_back({node.verdict(), node.reason(), {}});
    out[at->second].nodes.push_back(node.node());
  }
  return out;
}

Result<std::vector<snapshot::Determinism>> readDeterminism(const Project& project, std::int64_t run) {
  std::vector<snapshot::Determinism> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(Statement rows, project.connection().prepare(
                                      "SELECT verdict, reason, nodes FROM determinism WHERE plan = "
                                      "(SELECT max(plan) FROM determinism WHERE run = ?1) AND run = ?1 ORDER BY position"));
  rows.bind(run);
  while (rows.next()) {
    const std::string text = rows.text(2);
    const nlohmann::json nodes = text.size() > kMostBytes ? nlohmann::json() : nlohmann::json::parse(text, nullptr, false);
    if (!nodes.is_array()) continue;
    for (const auto& node : nodes) {
      if (!node.is_number_integer()) continue;
      snapshot::Determinism& verdict = out.emplace_back();
      verdict.set_node(node.get<std::int32_t>());
      verdict.set_verdict(rows.text(0));
      verdict.set_reason(rows.text(1));
    }
  }
  SS_STORE_TRY(rows.status());
  SS_STORE_ASSIGN(
      Statement order,
      project.connection().prepare(
          "SELECT node FROM instructions WHERE plan = (SELECT max(plan) FROM determinism WHERE run = ?) ORDER BY position"));
  order.bind(run);
  std::unordered_map<std::int32_t, std::size_t> places;
  while (order.next()) places.try_emplace(static_cast<std::int32_t>(order.integer(0)), places.size());
  SS_STORE_TRY(order.status());
  const auto place = [&places](const snapshot::Determinism& d) {
    const auto found = places.find(d.node());
    return found == places.end() ? places.size() : found->second;
  };
  std::stable_sort(out.begin(), out.end(), [&place](const auto& a, const auto& b) { return place(a) < place(b); });
  return out;
}

}  // namespace stepscope::storage
