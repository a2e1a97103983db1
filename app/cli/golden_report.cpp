#include "app/cli/golden_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/units.h"
#include "engine/snapshot/utf8.h"

namespace stepscope::cli {
namespace {

using Kind = GoldenRow::Kind;

bool measured(const GoldenRow& row) { return row.kind != Kind::kDraws && (!std::isnan(row.cosine) || !row.index.empty()); }

std::string number(const GoldenRow& row, double value) {
  return measured(row) ? fmt::format("{:.2e}", units::signless(value)) : "-";
}

std::string cosineText(const GoldenRow& row) {
  return !measured(row) || row.kind == Kind::kLoss ? "-"
         : std::isnan(row.cosine)                  ? "NaN"
                                                   : fmt::format("{:.6f}", row.cosine);
}

std::string placeOf(const GoldenRow& row) {
  return row.module + (row.module.empty() || row.source.empty() ? "" : "  ") + row.source;
}

void printGoldenReportJson(const GoldenReport& report) {
  for (const GoldenRow& row : report.rows)
    sayJson({{"event", "tensor"},
             {"kind", kindName(row.kind)},
             {"name", toUtf8(row.name)},
             {"shape", row.dims},
             {"max_abs", row.maxAbs},
             {"max_rel", row.maxRel},
             {"cosine", row.cosine},
             {"tolerance", row.tolerance},
             {"index", row.index},
             {"found", row.found},
             {"expected", row.expected},
             {"verdict", verdictName(row.verdict)},
             {"reason", toUtf8(row.words)},
             {"cause", toUtf8(row.cause)},
             {"module", toUtf8(row.module)},
             {"source", toUtf8(row.source)}});
  sayJson({{"event", "verify"},
           {"verdict", !report.unchecked.empty() ? "unchecked"
                       : report.agrees()         ? "agrees"
                                                 : "differs"},
           {"precision", kGoldenPrecision},
           {"precision_not_compared", toUtf8(report.notPrecision)},
           {"reason", toUtf8(report.unchecked)},
           {"agrees", report.count(GoldenVerdict::kAgrees)},
           {"differs", report.count(GoldenVerdict::kDiffers)},
           {"skipped", report.count(GoldenVerdict::kSkipped)},
           {"first_output", toUtf8(report.firstOutput)}});
}

// What of the run no verdict speaks of: lines or the end of one, each behind `before`.
std::string notCompared(const GoldenReport& report, std::string_view before) {
  if (report.notPrecision.empty()) return {};
  return fmt::format("{}{} was not compared: `stepscope precision` judges it", before, toUtf8(report.notPrecision));
}

// "loss, 12 gradients and 2 running statistics".
std::string contentsText(const GoldenReport& report) {
  const auto count = [&](Kind kind) {
    return std::count_if(report.rows.begin(), report.rows.end(),
                         [&](const GoldenRow& row) { return row.kind == kind && row.verdict != GoldenVerdict::kSkipped; });
  };
  std::vector<std::string> parts;
  const auto add = [&](Kind kind, const char* one, const char* many) {
    if (const auto n = count(kind); n > 0)
      parts.push_back(n == 1 ? fmt::format("1 {}", one) : fmt::format("{} {}", n, many));
  };
  add(Kind::kLoss, "loss", "losses");
  add(Kind::kGradient, "gradient", "gradients");
  add(Kind::kStatistic, "running statistic", "running statistics");
  add(Kind::kOutput, "module output", "module outputs");
  add(Kind::kParameter, "parameter after the last step", "parameters after the last step");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string goldenLine(const GoldenReport& report) {
  if (!report.unchecked.empty()) return fmt::format("PyTorch: unchecked: {}", report.unchecked);
  const GoldenRow* closest = nullptr;  // to its tolerance
  for (const GoldenRow& row : report.rows)
    if (row.tolerance > 0 && measured(row) &&
        (closest == nullptr || row.maxAbs / row.tolerance > closest->maxAbs / closest->tolerance))
      closest = &row;
  return fmt::format("PyTorch: {} agree in {}{}{}", contentsText(report), kGoldenPrecision,
                     closest == nullptr ? ""
                                        : fmt::format("; closest to its tolerance: '{}', off by {:.2e} of {:.2e}",
                                                      closest->name, closest->maxAbs, closest->tolerance),
                     notCompared(report, "; "));
}

snapshot::Alert goldenAlert(const GoldenReport& report) {
  snapshot::Alert alert = makeAlert(snapshot::Alert::WARNING, "capture_differs");
  const GoldenRow* worst = report.worst();
  if (worst == nullptr) return alert;
  const auto differ = report.count(GoldenVerdict::kDiffers);
  std::string text = fmt::format("not what PyTorch computed: {} tensor{} of {} differ{} in {}; ", differ,
                                 differ == 1 ? "" : "s", contentsText(report), differ == 1 ? "s" : "", kGoldenPrecision);
  text += fmt::format("{} '{}'", kindName(worst->kind), worst->name);
  if (measured(*worst))
    text += fmt::format(": {:.6g} where PyTorch has {:.6g}, off by {:.2e} with a tolerance of {:.2e}",
                        units::signless(worst->found), units::signless(worst->expected), units::signless(worst->maxAbs),
                        worst->tolerance);
  if (!worst->words.empty()) text += fmt::format(": {}", worst->words);
  if (const std::string place = placeOf(*worst); !place.empty()) text += fmt::format(" ({})", place);
  if (!worst->cause.empty()) text += fmt::format("; likely: {}", worst->cause);
  if (!report.firstOutput.empty()) text += fmt::format("; the first module whose output differs: '{}'", report.firstOutput);
  alert.set_message(toUtf8(text + "; `stepscope verify` lists all"));
  return alert;
}

void tellGolden(const GoldenReport& report, bool json) {
  if (json) {
    printGoldenReportJson(report);
    return;
  }
  if (!report.unchecked.empty()) {
    say("unchecked: {}\n", report.unchecked);
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const GoldenRow& row : report.rows)
    rows.push_back({std::string(kindName(row.kind)), row.name, dimsText(row.dims), number(row, row.maxAbs),
                    number(row, row.maxRel), cosineText(row), number(row, row.tolerance),
                    std::string(verdictName(row.verdict)), row.module, row.source});
  say("{}",
      table({"what", "name", "shape", "off by", "relative", "cosine", "tolerance", "verdict", "module", "source"}, rows, 2));
  say("off by: largest difference of an element; relative: that, as a share of PyTorch's largest element\n");
  for (const GoldenRow& row : report.rows)
    if (!row.words.empty() || !row.cause.empty())
      say("{} {} '{}': {}{}{}\n", verdictName(row.verdict), kindName(row.kind), row.name, row.words,
          row.words.empty() || row.cause.empty() ? "" : "; ", row.cause.empty() ? "" : "likely: " + row.cause);
  if (!report.firstOutput.empty()) say("the first module whose output differs: '{}'\n", report.firstOutput);
  if (report.agrees())
    say("{}\n", goldenLine(report));
  else
    say("{} differ in {}; compared: {}{}\n", report.count(GoldenVerdict::kDiffers), kGoldenPrecision, contentsText(report),
        notCompared(report, "\n"));
}

}  // namespace stepscope::cli
