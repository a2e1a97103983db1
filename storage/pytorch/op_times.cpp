#include "storage/pytorch/op_times.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string_view>

namespace stepscope::storage {
namespace {

constexpr std::string_view kBetween = " + ";  // of the texts of a row

std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetween), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + kBetween.size()));
  }
  return out;
}

}  // namespace

std::vector<PyTorchOpTime> opTimesOf(const PyTorchJoin& join, const std::vector<InstructionTime>& instructions) {
  // Two instructions of one label come in the order in which the rows name them.
  std::map<std::pair<std::string, std::string>, std::deque<const InstructionTime*>> byLabel;
  for (const InstructionTime& one : instructions) byLabel[{one.phase, one.label}].push_back(&one);
  struct Sum {
    double theirs = 0, ours = 0;
    std::vector<int> instructions;
    std::vector<std::string> names;
    std::set<std::string> known;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const PyTorchRow& row : join.rows) {
    if (row.theirs.empty() || row.ours.empty()) continue;
    std::vector<const InstructionTime*> found;
    double ns = 0;
    for (const std::string& label : parts(row.ours)) {
      const auto at = byLabel.find({row.phase, label});
      if (at == byLabel.end() || at->second.empty()) continue;
      found.push_back(at->second.front());
      ns += static_cast<double>(found.back()->time.median);
      at->second.pop_front();
    }
    for (const InstructionTime* one : found) {
      Sum& sum = sums[{one->phase, one->op}];
      const auto own = static_cast<double>(one->time.median);
      sum.ours += own;
      sum.instructions.push_back(one->position);
      sum.theirs += row.theirAmount * (ns > 0 ? own / ns : 1.0 / static_cast<double>(found.size()));
      for (std::string& name : parts(row.theirs))
        if (sum.known.insert(name).second) sum.names.push_back(std::move(name));
    }
  }
  std::vector<PyTorchOpTime> out;
  for (auto& [key, sum] : sums) {
    PyTorchOpTime& one =
        out.emplace_back(PyTorchOpTime{key.second, key.first, sum.theirs, sum.ours, std::move(sum.instructions), {}});
    for (const std::string& name : sum.names) one.theirs += (one.theirs.empty() ? "" : ", ") + name;
  }
  return out;
}

Result<std::vector<PyTorchOpTime>> readPyTorchOpTimes(const Project& project, std::int64_t run) {
  SS_STORE_ASSIGN(const std::vector<PyTorchJoin> joins, readJoins(project, run));
  const auto time = std::ranges::find(joins, "time", &PyTorchJoin::kind);
  if (time == joins.end()) return std::vector<PyTorchOpTime>();
  SS_STORE_ASSIGN(const Timing timing, readTiming(project, run));
  return opTimesOf(*time, timing.instructions);
}

}  // namespace stepscope::storage
