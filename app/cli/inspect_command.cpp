#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "storage/project.h"
#include "storage/queries.h"

namespace stepscope::cli {
namespace {

void printModel(const snapshot::ModelInfo& info) {
  fmt::print("{}  {}  {}  IR {}\n", info.path(), bytesText(info.file_bytes()), info.producer(), info.ir_version());
  for (const auto& [domain, version] : info.opsets())
    fmt::print("  opset {} {}\n", domain.empty() ? "ai.onnx" : domain, version);
  fmt::print("{} nodes, {} functions, {} parameters\n\n", info.node_count(), info.function_count(), info.parameter_count());
  const auto dims = [](const auto& list) {
    std::string text = "[";
    for (int i = 0; i < list.size(); ++i) text += (i ? ", " : "") + fmt::format("{}", list.Get(i));
    return text + "]";
  };
  std::vector<std::vector<std::string>> rows;
  for (const auto& input : info.inputs())
    rows.push_back({input.name(), input.dtype() + dims(input.dims()), input.role(), input.reason()});
  fmt::print("{}\n", table({"input", "type", "holds", "because"}, rows, 4));
  if (!info.proposed_data().empty())
    fmt::print("data: --data {}  ({})\n\n", info.proposed_data(), info.data_reason());
  else if (!info.data_reason().empty())
    fmt::print("no data: {}\n\n", info.data_reason());
  rows.clear();
  for (const auto& dimension : info.dimensions())
    rows.push_back({dimension.name(), std::to_string(dimension.extent()), dimension.reason()});
  if (!rows.empty()) fmt::print("{}\n", table({"dimension", "synthetic", "because"}, rows, 3));
  rows.clear();
  for (const auto& output : info.outputs())
    rows.push_back({output.name(), output.dtype() + dims(output.dims()),
                    output.name() == info.proposed_loss() ? "loss: " + info.loss_reason() : ""});
  fmt::print("{}\n", table({"output", "type", ""}, rows, 3));
  if (info.proposed_loss().empty()) fmt::print("no loss: {}; --loss-fn attaches one\n\n", info.loss_reason());
  rows.clear();
  for (const auto& p : info.parameters())
    rows.push_back({p.name(), p.dtype() + dims(p.dims()), p.trained() ? "trained" : "",
                    p.reason() + (p.missing() ? "; data missing" : ""), bytesText(p.bytes())});
  fmt::print("{}\n", table({"initializer", "type", "", "because", "size"}, rows, 4));
  rows.clear();
  for (const auto& op : info.ops())
    rows.push_back({op.domain().empty() ? op.op() : op.domain() + "." + op.op(), std::to_string(op.count()),
                    op.has_gradient() ? "yes" : "no",
                    op.has_fast_kernel() ? "fast"
                    : op.has_kernel()    ? "reference"
                                         : "none",
                    op.note()});
  fmt::print("{}", table({"operator", "nodes", "gradient", "kernel", "note"}, rows));
}

int inspectProject(const std::string& path, bool json) {
  auto project = storage::Project::openReadOnly(path);
  if (!project) return fmt::print(stderr, "error: {}\n", project.error().message), kFailed;
  const auto runs = storage::listRuns(*project);
  if (!runs) return fmt::print(stderr, "error: {}\n", runs.error().message), kFailed;
  std::vector<std::vector<std::string>> rows;
  for (const storage::RunRow& run : *runs) {
    if (json)
      fmt::print(
          "{}\n",
          nlohmann::json{
              {"run", run.id}, {"name", run.name}, {"model", run.modelPath}, {"steps", run.steps}, {"status", run.status}}
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    rows.push_back({std::to_string(run.id), run.name, run.optimizer, run.status, std::to_string(run.steps),
                    run.firstLoss ? fmt::format("{:.6g}", *run.firstLoss) : "",
                    run.lastLoss ? fmt::format("{:.6g}", *run.lastLoss) : "", timeText(run.totalStepNs)});
  }
  if (!json)
    fmt::print("{}", table({"run", "name", "optimizer", "status", "steps", "first loss", "last loss", "time"}, rows, 4));
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
  a->shared.addTo(command);
  command.run = [a] {
    if (a->path.ends_with(".stepscope")) return inspectProject(a->path, a->json);
    const Output output(false);
    auto options = a->shared.apply();
    if (!options) return fmt::print(stderr, "error: {}\n", options.error().message), kUsage;
    options->missingWeights = "random";  // looking at a graph needs no weights
    auto session = openSession(a->path, *options, output);
    if (!session) return report(session.error());
    const snapshot::ModelInfo info = (*session)->inspect();
    if (!a->json) return printModel(info), kSuccess;
    std::string text;
    google::protobuf::util::JsonPrintOptions print;
    print.preserve_proto_field_names = true;
    print.always_print_primitive_fields = true;
    if (!google::protobuf::util::MessageToJsonString(info, &text, print).ok()) return kFailed;
    fmt::print("{}\n", text);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
