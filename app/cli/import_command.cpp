// `stepscope import`: what PyTorch measured of the same model, beside a recorded run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"
#include "storage/pytorch/join.h"
#include "storage/queries.h"

namespace stepscope::cli {
namespace {

struct ImportArguments {
  std::string project, trace, memory, by = "module";
  std::int64_t run = 0, rows = 40;
  bool json = false;
};

using storage::PyTorchJoin;
using storage::PyTorchRow;

std::string ratio(const PyTorchRow& row) {
  return row.theirAmount > 0 && row.ourAmount > 0 ? fmt::format("{:.2f}", row.ourAmount / row.theirAmount)
                                                  : std::string("-");
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 56;
  if (text.empty()) return "-";
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest - 1;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

bool isSum(const PyTorchRow& row) { return row.phase == "step" || row.phase == "peak"; }

// Rows of one module and phase as one, in the order of the first; sums stay.
std::vector<PyTorchRow> byModule(const std::vector<PyTorchRow>& rows) {
  std::vector<PyTorchRow> out;
  std::map<std::pair<std::string, std::string>, std::size_t> place;
  for (const PyTorchRow& row : rows) {
    const auto [found, isNew] = place.try_emplace({row.phase, row.module}, out.size());
    if (isNew) out.push_back({row.phase, row.module, {}, {}, 0, 0});
    out[found->second].theirAmount += row.theirAmount;
    out[found->second].ourAmount += row.ourAmount;
  }
  return out;
}

void printText(const PyTorchJoin& join, const ImportArguments& a) {
  const bool time = join.kind == "time";
  const auto amount = [&](double value) {
    if (value == 0) return std::string("-");
    return time ? units::time(static_cast<std::int64_t>(value)) : units::bytes(static_cast<std::int64_t>(value));
  };
  const bool modules = a.by == "module";
  std::vector<PyTorchRow> rows = modules ? byModule(join.rows) : join.rows;
  std::vector<std::vector<std::string>> lines, sums;
  std::int64_t more = 0;
  for (const PyTorchRow& row : rows) {
    std::vector<std::string> line = {row.phase, row.module.empty() && !isSum(row) ? "(none)" : row.module};
    if (!modules) line.insert(line.end(), {shortened(row.theirs), shortened(row.ours)});
    line.insert(line.end(), {amount(row.theirAmount), amount(row.ourAmount), ratio(row)});
    if (isSum(row))
      sums.push_back(std::move(line));
    else if (std::ssize(lines) < a.rows)
      lines.push_back(std::move(line));
    else
      ++more;
  }
  lines.insert(lines.end(), sums.begin(), sums.end());
  std::vector<std::string> header = {time ? "phase" : "memory", "module"};
  if (!modules) header.insert(header.end(), {"PyTorch", "Stepscope"});
  header.insert(header.end(), {"theirs", "ours", "ratio"});
  say("{}", table(header, lines, modules ? 2 : 4));
  if (more > 0) say("{} more (--rows)\n", more);
  say("\n{}: {} rows joined; {} of PyTorch's and {} of ours could not be\n", join.kind, join.joined, join.theirsAlone,
      join.oursAlone);
  for (const std::string& note : join.notes) say("{}\n", note);
}

void printJson(const PyTorchJoin& join, const std::string& file, std::int64_t run) {
  for (const PyTorchRow& row : join.rows) {
    nlohmann::json event = {{"event", "import_row"},
                            {"kind", join.kind},
                            {"phase", row.phase},
                            {"module", row.module},
                            {"theirs", row.theirs},
                            {"ours", row.ours},
                            {"their_amount", row.theirAmount},
                            {"our_amount", row.ourAmount},
                            {"ratio", nullptr}};
    if (row.theirAmount > 0 && row.ourAmount > 0) event["ratio"] = row.ourAmount / row.theirAmount;
    sayJson(event);
  }
  sayJson({{"event", "import"},
           {"kind", join.kind},
           {"file", file},
           {"run", run},
           {"joined", join.joined},
           {"theirs_alone", join.theirsAlone},
           {"ours_alone", join.oursAlone},
           {"notes", join.notes}});
}

storage::Status import(const ImportArguments& a) {
  SS_STORE_ASSIGN(const storage::Project project, storage::Project::openForWriting(a.project));
  std::int64_t run = a.run;
  if (run == 0) {
    SS_STORE_ASSIGN(run, storage::newestRun(project));
  }
  SS_STORE_TRY(storage::readRun(project, run));
  const auto keep = [&](const PyTorchJoin& join, const std::string& path) -> storage::Status {
    const std::string file = std::filesystem::path(path).filename().string();
    SS_STORE_TRY(storage::writeJoin(project, run, join, file));
    a.json ? printJson(join, file, run) : printText(join, a);
    return {};
  };
  if (!a.trace.empty()) {
    SS_STORE_ASSIGN(const storage::KinetoTrace trace, storage::readKinetoTrace(a.trace));
    SS_STORE_ASSIGN(const PyTorchJoin join, storage::joinTime(project, run, trace, a.trace));
    SS_STORE_TRY(keep(join, a.trace));
  }
  if (!a.memory.empty()) {
    SS_STORE_ASSIGN(const storage::MemorySnapshot snapshot, storage::readMemorySnapshot(a.memory));
    SS_STORE_ASSIGN(const PyTorchJoin join, storage::joinMemory(project, run, snapshot, a.memory));
    if (!a.trace.empty() && !a.json) say("\n");
    SS_STORE_TRY(keep(join, a.memory));
  }
  return {};
}

}  // namespace

Command importCommand() {
  auto a = std::make_shared<ImportArguments>();
  Command command{
      "import",
      "what PyTorch measured of the same model beside a recorded run, module by module: theirs, ours, ratio",
      {{"PROJECT", &a->project, "project file; the rows go into its tables pytorch_imports and pytorch_rows", {}, true},
       {"--kineto", &a->trace, "JSON of torch.profiler's export_chrome_trace; best with record_shapes and with_stack",
        "FILE"},
       {"--memory-snapshot", &a->memory, "pickle of torch.cuda.memory._dump_snapshot, with its history", "FILE"},
       {"--run", &a->run, "number of the run [the newest]", "N"},
       {"--by", &a->by, "module, or row: each operator beside each instruction, each allocation beside each value [module]",
        "WHAT"},
       {"--rows", &a->rows, "lines to print [40]", "N"},
       {"--json", &a->json, "one JSON object per line: every row, the sums"}}};
  command.run = [a] {
    const auto refuse = [](std::string text) {
      tellError(text);
      return kUsage;
    };
    if (a->trace.empty() && a->memory.empty())
      return refuse("import: found no file; expected --kineto FILE, --memory-snapshot FILE or both");
    if (a->by != "module" && a->by != "row")
      return refuse(fmt::format("option 'by': found '{}'; expected module or row", a->by));
    if (a->rows < 1 || a->rows > 1'000'000)
      return refuse(fmt::format("option 'rows': found {}; expected 1 to 1000000", a->rows));
    if (a->run < 0) return refuse(fmt::format("option 'run': found {}; expected 1 or more", a->run));
    std::error_code error;
    if (!std::filesystem::is_regular_file(a->project, error))
      return tellError(fmt::format("project '{}': no such file; expected a .stepscope file", a->project));
    if (const auto done = import(*a); !done) return tellError(done.error().message);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
