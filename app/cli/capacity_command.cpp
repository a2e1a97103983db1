// `stepscope capacity`: what fits into a memory, without running anything.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/data/file.h"
#include "engine/lab/rank_capacity.h"
#include "engine/profile/machine_file.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

constexpr std::int64_t kMostMachineBytes = 1 << 20;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 32, kMostRanks = 1 << 20;

struct CapacityArguments {
  std::string model, memory, vary, machine, ranks, network;
  bool json = false, recompute = false;
  SharedOptions shared;
};

// 0: no number from 1 to `most`.
std::int64_t numberUpTo(std::string_view text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most ? value : 0;
}

// --memory: the sizes that option memory.limit takes.
Result<std::int64_t> memoryBytes(const std::string& text) {
  if (text.empty()) return 0;
  TrainOptions options;
  if (const Status set = applySetting(options, "memory.limit", text, "command line"); !set || options.memoryLimit == 0)
    return invalidOption("memory",
                         fmt::format("found '{}'; expected a size above 0, such as 24GiB, 755 MiB or 1048576", text));
  return options.memoryLimit;
}

// --vary NAME=A..B or NAME=N. Without it the batch.
Result<snapshot::GetCapacity> capacityQuestion(const CapacityArguments& a) {
  snapshot::GetCapacity question;
  SS_ASSIGN(const std::int64_t memory, memoryBytes(a.memory));
  question.set_memory_bytes(memory);
  question.set_recompute(a.recompute);
  if (!a.machine.empty()) {
    SS_ASSIGN(const auto bytes, readWholeFile(a.machine, kMostMachineBytes, "machine"));
    question.set_machine(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    question.set_machine_name(a.machine);
    SS_TRY(parseMachine(question.machine(), a.machine));
  }
  if (a.vary.empty()) {
    question.set_dimension("batch");
    return question;
  }
  const auto wrong = [&](const char* what) {
    return invalidOption("vary", fmt::format("found '{}'{}; expected NAME=FROM..TO, such as batch=1..64", a.vary, what));
  };
  const auto equals = a.vary.rfind('=');
  if (equals == std::string::npos || equals == 0) return wrong("");
  const std::string_view range = std::string_view(a.vary).substr(equals + 1);
  const auto dots = range.find("..");
  const auto number = [](std::string_view text) { return numberUpTo(text, kMostExtent); };
  const std::int64_t least = number(range.substr(0, dots)),
                     most = dots == std::string_view::npos ? least : number(range.substr(dots + 2));
  if (least == 0 || most == 0) return wrong(": no extents from 1 to 2^32");
  if (most < least) return wrong(": the range is empty");
  question.set_dimension(a.vary.substr(0, equals));
  question.set_least(least);
  question.set_most(most);
  return question;
}

void printCapacityJson(const snapshot::CapacityReport& report) {
  for (const auto& p : report.points())
    sayJson({{"event", "capacity"},
             {"batch", p.batch()},
             {"recompute", p.recompute()},
             {"peak_bytes", p.peak_bytes()},
             {"fits", p.fits()},
             {"predicted_ns", p.predicted_ns()},
             {"dimension", report.dimension()},
             {"extent", p.extent()},
             {"memory_bytes", report.memory_bytes()},
             {"arena_bytes", p.arena_bytes()},
             {"persistent_bytes", p.persistent_bytes()},
             {"state_bytes", p.state_bytes()},
             {"flops", p.flops()},
             {"instructions", p.instructions()},
             {"repeated", p.repeated()},
             {"dynamic", p.dynamic()}});
  sayJson({{"event", "capacity_largest"},
           {"dimension", report.dimension()},
           {"memory_bytes", report.memory_bytes()},
           {"largest", report.largest()},
           {"largest_with_recompute", report.largest_with_recompute()},
           {"machine", report.machine()},
           {"peaks", report.peaks()},
           {"ended", report.ended()}});
}

void printCapacityText(const snapshot::CapacityReport& report, bool recompute) {
  std::vector<std::vector<std::string>> rows;
  std::int64_t dynamic = 0;
  for (const auto& p : report.points()) {
    const double samples = static_cast<double>(std::max<std::int64_t>(1, p.batch()));
    rows.push_back({report.dimension().empty() ? "as it is" : fmt::format("{}={}", report.dimension(), p.extent()),
                    p.recompute(), units::bytes(p.peak_bytes()), units::bytes(p.arena_bytes()),
                    units::bytes(p.state_bytes()), p.fits() ? "fits" : "no", units::time(p.predicted_ns()),
                    units::time(p.predicted_ns() / samples), std::to_string(p.repeated())});
    dynamic = std::max<std::int64_t>(dynamic, p.dynamic());
  }
  say("{}", table({"extent", "recompute", "peak", "arena", "state", units::bytes(report.memory_bytes()), "step at least",
                   "per sample", "run again"},
                  rows, 2));
  say("\npeak: arena, state, constants and batch of the plan; step at least: by the roofline of {} ({})\n",
      report.machine().empty() ? "this machine" : report.machine(), report.peaks());
  if (dynamic > 0) say("{} instructions have extents that only a run tells: their memory is not in the peak\n", dynamic);
  if (report.dimension().empty()) return;
  const auto largest = [](std::int64_t extent) { return extent > 0 ? std::to_string(extent) : std::string("none"); };
  say("largest {} that fits {}: {}", report.dimension(), units::bytes(report.memory_bytes()), largest(report.largest()));
  if (recompute) say(", with recompute {}", largest(report.largest_with_recompute()));
  say("\n");
  if (!report.ended().empty()) say("no plan for {}\n", report.ended());
}

// --ranks FROM..TO: doubled from the first on, and the last.
Result<std::vector<std::int64_t>> rankCounts(const std::string& text) {
  const auto dots = text.find("..");
  const std::int64_t least = numberUpTo(std::string_view(text).substr(0, dots), kMostRanks);
  const std::int64_t most =
      dots == std::string::npos ? least : numberUpTo(std::string_view(text).substr(dots + 2), kMostRanks);
  if (least == 0 || most < least)
    return invalidOption("ranks", fmt::format("found '{}'; expected FROM..TO from 1 to 2^20, such as 8..4096", text));
  std::vector<std::int64_t> counts;
  for (std::int64_t count = least; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

Status wrongRanks(const CapacityArguments& a) {
  if (a.ranks.empty() && a.network.empty()) return {};
  if (a.ranks.empty() || a.network.empty())
    return invalidOption(a.ranks.empty() ? "network" : "ranks",
                         fmt::format("without '{}'; expected both, such as --ranks 8..4096 --network FILE.json",
                                     a.ranks.empty() ? "ranks" : "network"));
  if (!a.vary.empty() || a.recompute)
    return invalidOption("ranks", "with --vary or --recompute; expected one extent, which --dim sets");
  SS_TRY(rankCounts(a.ranks));
  return {};
}

void printRanks(const std::vector<RankPoint>& points, const NetworkFile& network, const Output& output) {
  std::vector<std::vector<std::string>> rows;
  for (const RankPoint& p : points) {
    const double share = p.exposedNs / std::max(1.0, p.exposedNs + p.computeNs);
    nlohmann::json levels = nlohmann::json::array();
    for (std::size_t i = 0; i < network.levels.size(); ++i)
      levels.push_back({{"level", network.levels[i].name}, {"sent_bytes", p.levelBytes[i]}});
    if (output.json())
      sayJson({{"event", "capacity_ranks"},
               {"ranks", p.ranks},
               {"network", network.name},
               {"peak_bytes", p.peakBytes},
               {"arena_bytes", p.arenaBytes},
               {"state_bytes", p.stateBytes},
               {"collectives", p.collectives},
               {"sent_bytes", p.sentBytes},
               {"levels", std::move(levels)},
               {"communication_ns", p.communicationNs},
               {"exposed_ns", p.exposedNs},
               {"compute_ns", p.computeNs}});
    rows.push_back({std::to_string(p.ranks), units::bytes(p.peakBytes), units::bytes(p.stateBytes),
                    std::to_string(p.collectives), units::bytes(p.sentBytes), units::time(p.communicationNs),
                    units::time(p.exposedNs), units::time(p.computeNs), fmt::format("{:.1f} %", 100 * share)});
  }
  if (output.json()) return;
  say("{}",
      table({"ranks", "peak", "state", "collectives", "sent", "communication", "of it exposed", "compute at least", "share"},
            rows, 2));
  say("\nof one rank, in one update with its micro steps, on network {}; exposed: while no node runs, and the share of it\n",
      network.name.empty() ? "without a name" : network.name);
}

// What so many processes would need and exchange.
Status capacityOfRanks(const CapacityArguments& a, Session& session, const Output& output) {
  SS_ASSIGN(const std::vector<std::int64_t> counts, rankCounts(a.ranks));
  const auto text = [](const std::string& file, const char* what) -> Result<std::string> {
    if (file.empty()) return std::string();
    SS_ASSIGN(const auto bytes, readWholeFile(file, kMostMachineBytes, what));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  SS_ASSIGN(const std::string described, text(a.network, "network"));
  SS_ASSIGN(const NetworkFile network, parseNetwork(described, a.network));
  SS_ASSIGN(const std::string machine, text(a.machine, "machine"));
  SS_ASSIGN(const auto points, session.lab().rankCapacity(network, counts, machine, a.machine));
  printRanks(points, network, output);
  return {};
}

Status capacity(const CapacityArguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  SS_ASSIGN(snapshot::GetCapacity question, capacityQuestion(a));
  if (question.memory_bytes() == 0 && options.memoryLimit > 0) question.set_memory_bytes(options.memoryLimit);
  options.ringBytes = 0;
  options.missingWeights = "random";  // nobody reads them
  SS_ASSIGN(const auto session, openSession(a.model, options, output, true));
  if (!a.ranks.empty()) return capacityOfRanks(a, *session, output);
  auto report = session->lab().capacity(question);
  if (!report && report.error().code == ErrorCode::kNotFound && a.vary.empty()) {
    question.clear_dimension();
    report = session->lab().capacity(question);
  }
  if (!report) return tl::make_unexpected(report.error());
  if (output.json())
    printCapacityJson(*report);
  else
    printCapacityText(*report, a.recompute);
  return {};
}

}  // namespace

Command capacityCommand() {
  auto a = std::make_shared<CapacityArguments>();
  Command command{
      "capacity",
      "what fits into a memory: plan the step for many batch sizes without running it and without weights",
      {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
       {"--memory", &a->memory, "bytes that the step may take, such as 24GiB [what this machine has]", "SIZE"},
       {"--vary", &a->vary, "NAME=FROM..TO: dimension of the inputs and its extents [batch=1..4096]", "NAME=RANGE"},
       {"--machine", &a->machine,
        "a machine that a file describes, as `stepscope doctor --json` writes it there: its memory and the times on it",
        "FILE.json"},
       {"--ranks", &a->ranks,
        "FROM..TO: what one of so many processes needs and sends in an update, and how long that takes on --network",
        "RANGE"},
       {"--network", &a->network, "a network that a file describes: latency and bandwidth of its levels", "FILE.json"},
       {"--recompute", &a->recompute, "where the step does not fit: the smallest recompute with which it does"},
       {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command, {"--data", "--loss", "--loss-fn", "--logits", "--labels", "--train", "--freeze", "--optimizer",
                            "--precision", "--accumulate", "--dim", "--threads", "--device", "--momentum", "--set"});
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    if (const auto wrong = wrongRanks(*a); !wrong) {
      report(wrong.error());
      return kUsage;
    }
    if (const auto question = capacityQuestion(*a); !question) {
      report(question.error());
      return kUsage;
    }
    if (Status status = capacity(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
