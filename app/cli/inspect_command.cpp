#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/message_json.h"
#include "app/cli/open_project.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"
#include "storage/queries.h"

namespace stepscope::cli {
namespace {

// Of extents as numbers, or as the text of symbols.
std::string dimsText(const auto& list) { return fmt::format("[{}]", fmt::join(list, ", ")); }

// Integers of a few elements: shapes, axes, counts.
bool isShapeConstant(const snapshot::ParameterInfo& p) {
  constexpr std::int64_t kLargest = 64;
  return !p.trained() && !p.missing() && p.dims_size() <= 1 && p.bytes() <= kLargest &&
         (p.dtype().starts_with("int") || p.dtype().starts_with("uint") || p.dtype() == "bool");
}

// Trained ones first, then what else computes, in the order of the file; shape constants are one line.
void printParameters(const snapshot::ModelInfo& info) {
  std::vector<std::vector<std::string>> rows;
  std::int64_t constants = 0, bytes = 0;
  for (const bool trained : {true, false})
    for (const auto& p : info.parameters()) {
      if (p.trained() != trained) continue;
      if (isShapeConstant(p)) {
        ++constants;
        bytes += p.bytes();
        continue;
      }
      rows.push_back({p.name(), p.dtype() + dimsText(p.dims()), p.trained() ? "trained" : "",
                      p.reason() + (p.missing() ? "; data missing" : ""), units::bytes(p.bytes())});
    }
  say("{}", table({"initializer", "type", "", "because", "size"}, rows, 4));
  if (constants > 0)
    say("and {} shape constant{} of {} (integers; --json lists them)\n", constants, constants == 1 ? "" : "s",
        units::bytes(bytes));
  say("\n");
}

void printModel(const snapshot::ModelInfo& info) {
  say("{}  {}  {}  IR {}\n", info.path(), units::bytes(info.file_bytes()), info.producer(), info.ir_version());
  for (const auto& [domain, version] : info.opsets()) say("  opset {} {}\n", domain.empty() ? "ai.onnx" : domain, version);
  say("{} nodes, {} functions, {} parameters\n\n", info.node_count(), info.function_count(), info.parameter_count());
  std::vector<std::vector<std::string>> rows;
  for (const auto& input : info.inputs())
    rows.push_back({input.name(), input.dtype() + dimsText(input.dims()), input.role(), input.reason()});
  say("{}\n", table({"input", "type", "holds", "because"}, rows, 4));
  if (!info.proposed_data().empty())
    say("data: --data {}  ({})\n\n", info.proposed_data(), info.data_reason());
  else if (!info.data_reason().empty())
    say("no data: {}\n\n", info.data_reason());
  rows.clear();
  for (const auto& dimension : info.dimensions())
    rows.push_back({dimension.name(), std::to_string(dimension.extent()), dimension.reason()});
  if (!rows.empty()) say("{}\n", table({"dimension", "synthetic", "because"}, rows, 3));
  rows.clear();
  for (const auto& output : info.outputs())
    rows.push_back({output.name(), output.dtype() + dimsText(output.dims()),
                    output.name() == info.proposed_loss() ? "loss: " + info.loss_reason() : ""});
  say("{}\n", table({"output", "type", ""}, rows, 3));
  if (info.proposed_loss().empty()) say("no loss: {}; --loss-fn attaches one\n\n", info.loss_reason());
  printParameters(info);
  rows.clear();
  for (const auto& op : info.ops())
    rows.push_back({op.domain().empty() ? op.op() : op.domain() + "." + op.op(), std::to_string(op.count()),
                    op.has_gradient() ? "yes" : "no",
                    op.has_fast_kernel() ? "fast"
                    : op.has_kernel()    ? "reference"
                                         : "none",
                    op.note()});
  say("{}", table({"operator", "nodes", "gradient", "kernel", "note"}, rows));
}

int inspectProject(const std::string& path, bool json) {
  const auto project = openProject(path);
  if (!project) return kFailed;
  const auto runs = storage::listRuns(*project);
  if (!runs) return tellError(runs.error().message);
  std::vector<std::vector<std::string>> rows;
  for (const storage::RunRow& run : *runs) {
    if (json)
      sayJson({{"event", "run"},
               {"run", run.id},
               {"name", run.name},
               {"model", run.modelPath},
               {"optimizer", run.optimizer},
               {"steps", run.steps},
               {"lost_steps", run.lostSteps},
               {"first_loss", run.firstLoss ? nlohmann::json(*run.firstLoss) : nlohmann::json()},
               {"last_loss", run.lastLoss ? nlohmann::json(*run.lastLoss) : nlohmann::json()},
               {"step_ns", run.totalStepNs},
               {"status", run.status}});
    rows.push_back({std::to_string(run.id), run.name, run.optimizer, run.status,
                    run.lostSteps > 0 ? fmt::format("{}, {} lost", run.steps, run.lostSteps) : std::to_string(run.steps),
                    run.firstLoss ? fmt::format("{:.6g}", units::signless(*run.firstLoss)) : "",
                    run.lastLoss ? fmt::format("{:.6g}", units::signless(*run.lastLoss)) : "",
                    units::time(run.totalStepNs)});
  }
  if (!json) say("{}", table({"run", "name", "optimizer", "status", "steps", "first loss", "last loss", "time"}, rows, 4));
  return kSuccess;
}

}  // namespace

Command inspectCommand() {
  struct Arguments {
    std::string path;
    bool json = false;
    SharedOptions shared;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"inspect",
                  "inputs, outputs, parameters, operators and coverage of a model; runs of a project",
                  {{"MODEL", &a->path, "ONNX file or project file", {}, true}, {"--json", &a->json, "machine-readable"}}};
  a->shared.addTo(command, {"--loss", "--train", "--freeze", "--dim", "--plugin"});
  command.run = [a] {
    if (a->path.ends_with(".stepscope")) return inspectProject(a->path, a->json);
    const Output output(false);
    auto options = a->shared.apply();
    if (!options) return tellError(options.error().message), kUsage;
    options->missingWeights = "random";                           // looking at a graph needs no weights
    auto session = openSession(a->path, *options, output, true);  // nobody needs what is in the weights
    if (!session) return report(session.error());
    const snapshot::ModelInfo info = (*session)->inspect();
    if (!a->json) return printModel(info), kSuccess;
    nlohmann::json model = messageJson(info);
    model["event"] = "model";
    sayJson(model);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
