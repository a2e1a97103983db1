// `stepscope verify`: a captured folder next to what PyTorch computed.
#include <fmt/format.h>

#include <filesystem>

#include "app/cli/capture_folder.h"
#include "app/cli/command.h"
#include "app/cli/golden_report.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"

namespace stepscope::cli {
namespace {

struct VerifyArguments {
  std::string folder;
  bool json = false;
  SharedOptions shared;
};

// A run of `steps` steps with the folder's options: its losses, and at its end the parameters.
Status compareRun(Session& session, const CapturedGolden& captured, std::int64_t steps, GoldenReport& report) {
  const auto& losses = captured.golden.losses;
  for (std::int64_t i = 0; i < steps; ++i) {
    SS_ASSIGN(const snapshot::StepRecord record, session.step());
    if (i == 0 || i >= static_cast<std::int64_t>(losses.size())) continue;  // the first was compared
    const double expected = losses[static_cast<std::size_t>(i)];
    const Tensor found = Tensor::scalar(DType::kF64, record.loss()), golden = Tensor::scalar(DType::kF64, expected);
    report.rows.push_back(compareTensor(GoldenRow::Kind::kLoss, fmt::format("loss of step {}", i), found.view(),
                                        golden.view(), captured.golden.lossTolerance, std::max(1.0, std::abs(expected))));
  }
  if (captured.steps != steps) return {};
  const auto state = session.trained().named(false);
  for (const auto& [name, golden] : captured.parameters) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.dims != golden.dims()) {
      GoldenRow row;
      row.kind = GoldenRow::Kind::kParameter;
      row.name = name;
      row.dims = golden.dims();
      row.verdict = GoldenVerdict::kDiffers;
      row.words = "no such parameter of that shape after the last step";
      report.rows.push_back(std::move(row));
      continue;
    }
    const auto tolerance = captured.golden.tolerances.find("param/" + name);
    report.rows.push_back(
        compareTensor(GoldenRow::Kind::kParameter, name, found->second, golden.view(),
                      tolerance == captured.golden.tolerances.end() ? std::nullopt : std::optional(tolerance->second), 0));
  }
  return {};
}

Result<GoldenReport> verify(const VerifyArguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  options.record = "off";
  options.ringBytes = 0;
  const std::int64_t steps = options.origins.contains("steps") ? options.steps : 1;
  SS_ASSIGN(const auto session, openSession(a.folder, options, output, a.shared.mapWeights));
  SS_ASSIGN(const auto captured, readGolden(a.folder, options));
  if (!captured)
    return fail(ErrorCode::kNotFound,
                fmt::format("folder '{}': neither losses nor gradients of PyTorch; expected capture.json with losses, or "
                            "golden.safetensors; hint: capture with with_golden=True",
                            a.folder));
  SS_TRY(prepare(*session, a.shared));
  SS_TRY(session->build());
  SS_ASSIGN(GoldenReport report, session->lab().compareWithGolden(captured->golden, captured->ofRun ? 1 : steps));
  // The steps of a run in another precision are no more compared than its first.
  if (captured->ofRun && steps > 1 && report.unchecked.empty() && report.notPrecision.empty())
    SS_TRY(compareRun(*session, *captured, steps, report));
  const auto most = static_cast<std::int64_t>(captured->golden.losses.size());
  if (steps > most && report.unchecked.empty())
    tellWarning("steps", fmt::format("option 'steps': {}; the folder has the losses of {}", steps, most));
  return report;
}

std::optional<int> wrongUsage(const VerifyArguments& a) {
  if (const auto wrong = usageError(a.shared)) return wrong;
  const auto complain = [](const std::string& message) {
    tellError(message);
    return kUsage;
  };
  if (a.shared.apply()->steps < 1) return complain("option 'steps': found 0; expected at least 1");
  if (!a.shared.initFrom.empty())
    return complain("option 'init-from': the captured parameters are compared; expected no others");
  std::error_code error;
  if (std::filesystem::exists(a.folder, error) && !std::filesystem::is_directory(a.folder, error))
    return complain(fmt::format("folder '{}': a file; expected a folder of stepscope_capture", a.folder));
  return std::nullopt;
}

}  // namespace

Command verifyCommand() {
  auto a = std::make_shared<VerifyArguments>();
  Command command{"verify",
                  "compare loss, every gradient and running statistics with what PyTorch computed when it was captured",
                  {{"FOLDER", &a->folder, "folder of stepscope_capture (plugins/torch)", {}, true},
                   {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = wrongUsage(*a)) return *wrong;
    const auto report = verify(*a, output);
    if (!report) return stepscope::cli::report(report.error());
    tellGolden(*report, a->json);
    return report->count(GoldenVerdict::kDiffers) > 0 ? kFailed : kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
