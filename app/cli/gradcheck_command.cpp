// `stepscope gradcheck`: gradient rules beside finite differences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

struct Arguments {
  std::string model, node;
  bool json = false;
  SharedOptions shared;
};

Session* running = nullptr;

void onInterrupt(int) {
  if (running) running->cancel();
}

void printJson(const snapshot::GradcheckReport& report) {
  for (const auto& node : report.nodes()) {
    nlohmann::json inputs = nlohmann::json::array();
    for (const auto& input : node.inputs())
      inputs.push_back({{"index", input.index()},
                        {"name", input.name()},
                        {"dims", std::vector<std::int64_t>(input.dims().begin(), input.dims().end())},
                        {"norm", input.norm()},
                        {"error", input.error()},
                        {"probes", input.probes()},
                        {"verdict", input.verdict()}});
    sayJson({{"event", "gradcheck"},
             {"node", node.name()},
             {"op", node.op()},
             {"module", node.module()},
             {"source", node.source()},
             {"verdict", node.verdict()},
             {"note", node.note()},
             {"inputs", std::move(inputs)}});
  }
  sayJson({{"event", "gradchecks"},
           {"step", report.step()},
           {"batch", report.batch()},
           {"tolerance", report.tolerance()},
           {"nodes", report.nodes_size()},
           {"agreed", report.agreed()},
           {"differed", report.differed()}});
}

void printText(const snapshot::GradcheckReport& report) {
  std::vector<std::vector<std::string>> rows;
  std::string notes;
  for (const auto& node : report.nodes()) {
    if (!node.note().empty())
      notes += fmt::format("{} '{}': {}\n", visible(node.op()), visible(node.name()), visible(node.note()));
    if (node.inputs().empty()) rows.push_back({node.name(), node.op(), "", "", "", node.verdict()});
    for (const auto& input : node.inputs())
      rows.push_back({node.name(), node.op(),
                      fmt::format("{} '{}' [{}]", input.index(), input.name(), fmt::join(input.dims(), ", ")),
                      fmt::format("{:.3g}", units::signless(input.norm())),
                      fmt::format("{:.1e}", units::signless(input.error())), input.verdict()});
  }
  say("step {} ({})\n\n", report.step(), report.batch());
  say("{}", table({"node", "op", "operand", "norm of its gradient", "error", "verdict"}, rows, 3));
  if (!notes.empty()) say("\n{}", Ready{notes});
  say("\nnorm of its gradient: of a probe, a weighted sum of what the node alone makes; the gradient of the step's loss is "
      "that "
      "of --dump-grads\n");
  say("{} of {} nodes agree with finite differences in float64, {} differ, {} unchecked; error: relative, of the slope "
      "along random "
      "directions and of single elements, at most {:g}\n",
      report.agreed(), report.nodes_size(), report.differed(), report.nodes_size() - report.agreed() - report.differed(),
      report.tolerance());
}

Status gradcheck(const Arguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  options.ringBytes = 0;
  options.record = "off";
  const bool quiet = a.json;
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights,
                                            [quiet](const std::string& what, std::int64_t done, std::int64_t total) {
                                              if (!quiet && what.starts_with("gradcheck"))
                                                tell("{} ({} of {})\n", what, done + 1, total);
                                            }));
  SS_TRY(prepare(*session, a.shared));
  SS_TRY(session->build());
  running = session.get();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, onInterrupt);
  snapshot::GetGradcheck question;
  question.set_only(a.node);
  const auto report = session->lab().gradcheck(question);
  running = nullptr;
  if (!report) return tl::make_unexpected(report.error());
  if (a.json)
    printJson(*report);
  else
    printText(*report);
  if (report->differed() > 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("gradcheck: {} of {} nodes have a gradient that finite differences do not; expected none",
                            report->differed(), report->nodes_size()));
  if (report->agreed() == 0 && report->nodes_size() > 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("gradcheck: none of {} nodes could be checked, '{}': {}", report->nodes_size(),
                            report->nodes(0).name(), report->nodes(0).note()));
  return {};
}

}  // namespace

Command gradcheckCommand() {
  auto a = std::make_shared<Arguments>();
  Command command{
      "gradcheck",
      "gradient rules of the model's nodes beside finite differences in float64, at the values of the first step",
      {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
       {"--node", &a->node, "regular expression: only nodes whose name, op or module path it finds [all]", "REGEX"},
       {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    if (Status status = gradcheck(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
