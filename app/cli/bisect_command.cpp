// `stepscope bisect`: which options, and which nodes, make a step compute other numbers than the reference.
#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/setting_json.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/lab/bisect.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

struct BisectArguments {
  std::string model, output;
  std::vector<std::string> reference;
  double tolerance = 0;
  bool json = false;
  SharedOptions shared;
};

Session* runningBisect = nullptr;

void onBisectInterrupt(int) {
  if (runningBisect) runningBisect->cancel();
}

Result<BisectQuestion> bisectQuestion(const BisectArguments& a) {
  BisectQuestion question;
  bool kernels = false;
  std::vector<std::pair<std::string, std::string>> settings;
  for (const std::string& setting : a.reference) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalidOption("reference",
                           fmt::format("found '{}'; expected OPTION=VALUE, such as kernels=reference", setting));
    settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    kernels = kernels || settings.back().first == "kernels";
  }
  if (kernels) question.reference.clear();
  question.reference.insert(question.reference.end(), settings.begin(), settings.end());
  if (!(a.tolerance >= 0 && a.tolerance < 1))
    return invalidOption(
        "tolerance",
        fmt::format("found {}; expected a number from 0 to 1; 0: what the reference differs from itself", a.tolerance));
  question.tolerance = a.tolerance;
  question.file = a.output.empty() ? std::filesystem::path(a.model).stem().string() + ".bisect.onnx" : a.output;
  if (question.file.extension() != ".onnx")
    return invalidOption("output", fmt::format("found '{}'; expected a file name that ends in .onnx", a.output));
  return question;
}

void printBisectJson(const BisectReport& report) {
  nlohmann::json options = nlohmann::json::array();
  for (const BisectOption& o : report.options)
    options.push_back(
        {{"option", o.name}, {"reference", settingJson(o.name, o.reference)}, {"value", settingJson(o.name, o.value)}});
  sayJson({{"event", "bisect"},
           {"step", report.step},
           {"batch", report.batch},
           {"tolerance", report.tolerance},
           {"noise", report.noise},
           {"pairs", report.pairs},
           {"bound", report.all.bound},
           {"candidates", report.candidates},
           {"tried", report.tried},
           {"differs", report.differs},
           {"error", report.all.error},
           {"worst", report.all.what},
           {"options", options},
           {"options_error", report.found.error},
           {"options_bound", report.found.bound},
           {"first",
            {{"value", report.value},
             {"node", report.label},
             {"module", report.module},
             {"source", report.source},
             {"error", report.valueError}}},
           {"nodes", report.nodes},
           {"inputs", report.inputs},
           {"file", report.file.string()},
           {"data", report.data.string()},
           {"shown", report.shown},
           {"shown_error", report.shownError},
           {"note", report.note}});
}

std::string differenceText(const BisectDifference& of) {
  if (of.what.empty()) return "no bit differs";
  return fmt::format("relative error {:.2g} of the {}, where rounding makes at most {:.2g}", units::signless(of.error),
                     of.what, of.bound);
}

void printBisectText(const BisectReport& report) {
  say("step {} ({}): {} options differ from the reference, {} steps run\n", report.step, report.batch, report.candidates,
      report.tried);
  say("rounding: {} runs of the reference beside itself, gradients apart by {:.2g} in the median\n", report.pairs,
      report.noise);
  if (!report.differs) {
    say("it computes what the reference computes: {}\n", differenceText(report.all));
    return;
  }
  say("it differs: {}\n\n", differenceText(report.all));
  say("the smallest set of options that shows it:\n");
  for (const BisectOption& o : report.options) say("  {}={}, reference {}\n", o.name, o.value, o.reference);
  say("with it alone: {}\n", differenceText(report.found));
  if (!report.value.empty()) {
    say("\nthe first value that differs: '{}', made by {}", report.value, report.label);
    if (!report.module.empty()) say(" in {}", report.module);
    if (!report.source.empty()) say(", {}", report.source);
    say("; relative error {:.2g}\n", report.valueError);
  }
  if (!report.nodes.empty()) {
    say("\nsub-graph that shows it ({} node{}):\n", report.nodes.size(), report.nodes.size() == 1 ? "" : "s");
    for (const std::string& node : report.nodes) say("  {}\n", node);
    say("written to {}, its data to {}\n", report.file.string(), report.data.string());
  }
  if (report.shown) say("alone, it differs from the reference by {:.2g}\n", report.shownError);
  if (!report.note.empty()) say("{}\n", report.note);
}

Status bisectModel(const BisectArguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  SS_ASSIGN(const BisectQuestion question, bisectQuestion(a));
  SS_TRY(checkPlace("output", question.file.string()));
  options.ringBytes = 0;
  options.record = "off";
  const bool quiet = a.json;
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights,
                                            [quiet](const std::string& what, std::int64_t done, std::int64_t) {
                                              if (!quiet && what.starts_with("bisect")) tell("{} ({} so far)\n", what, done);
                                            }));
  SS_TRY(prepare(*session, a.shared));
  SS_TRY(session->build());
  runningBisect = session.get();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, onBisectInterrupt);
  const auto report = session->lab().bisect(question);
  runningBisect = nullptr;
  if (!report) return tl::make_unexpected(report.error());
  if (a.json)
    printBisectJson(*report);
  else
    printBisectText(*report);
  return {};
}

}  // namespace

Command bisectCommand() {
  auto a = std::make_shared<BisectArguments>();
  Command command{
      "bisect",
      "the step next to one with every optimisation off: the smallest set of options that makes numbers differ, and the "
      "smallest part of the graph that shows it, written as .onnx with its data",
      {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
       {"--reference", &a->reference, "a setting of the reference, on top of all passes off and float32 [kernels=reference]",
        "OPTION=VALUE"},
       {"--tolerance", &a->tolerance,
        "largest relative L2 error of loss and gradients that is rounding [measured: the reference beside itself]", "X"},
       {"-o,--output", &a->output, "the part of the graph; its data stands beside it [MODEL.bisect.onnx]", "FILE.onnx"},
       {"--json", &a->json, "one JSON object"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    if (const auto question = bisectQuestion(*a); !question) {
      report(question.error());
      return kUsage;
    }
    if (Status status = bisectModel(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
