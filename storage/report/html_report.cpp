#include "storage/report/html_report.h"

#include <fmt/format.h>

#include "storage/report/format.h"
#include "storage/report/sections.h"
#include "storage/report/style.h"

namespace stepscope::storage {
namespace {

struct Part {
  const char* id;
  const char* title;
  std::string (*make)(const ReportData&);
};

// The order in which people ask: is it all right, does it learn, what did the start cost, where does the time go, the
// memory.
constexpr Part kParts[] = {
    {"alerts", "Alerts", alertsSection},       {"loss", "Training", lossSection},
    {"values", "Values", valuesSection},       {"time", "Step time", timeSection},
    {"ops", "Operators", opsSection},          {"instructions", "Instructions", instructionSection},
    {"roofline", "Roofline", rooflineSection}, {"ledger", "Ledger", ledgerSection},
    {"memory", "Memory", memorySection},       {"trials", "Trials", trialsSection},
    {"startup", "Start-up", startUpSection},   {"passes", "Passes", passSection},
    {"options", "Options", optionsSection},    {"machine", "Model and machine", machineSection},
    {"steps", "Steps", stepsSection},
};

}  // namespace

std::string htmlReport(const ReportData& data) {
  std::string body, links;
  for (const Part& part : kParts) {
    const std::string text = part.make(data);
    if (text.empty()) continue;
    const bool counted = std::string_view(part.id) == "alerts";
    links += fmt::format("<a href=\"#{}\">{}{}</a>", part.id, part.title,
                         counted ? fmt::format("<span class=n>{}</span>", data.alerts.size() + data.lost.size()) : "");
    body += text;
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n"
      "<title>{} · Stepscope report</title>\n<style>{}</style>\n</head>\n<body>\n<div class=page>\n<nav "
      "aria-label=\"Contents\"><b>Stepscope</b>{}</nav>\n"
      "<main>\n{}{}<footer>Run {} of {} · times are wall clock of the worker’s monotonic clock · 1 KiB = 1,024 bytes · "
      "hover over a number for its full "
      "precision</footer>\n</main>\n</div>\n</body>\n</html>\n",
      html(data.model), reportStyle(), links, summarySection(data), body, data.run.id, html(data.projectName));
}

}  // namespace stepscope::storage
