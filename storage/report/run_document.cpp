#include "storage/report/run_document.h"

#include <fmt/format.h>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kTitleLetters = 160;

// The order in which people ask: is it all right, does it learn, where does the time go, the memory, what did the start
// cost.
constexpr MaybeSection (*kParts[])(const ReportData&) = {
    alertsSection,   lossSection,    valuesSection,  timeSection,    opsSection,    instructionSection,
    rooflineSection, kernelsSection, ledgerSection,  ranksSection,   memorySection, trialsSection,
    startUpSection,  passSection,    optionsSection, machineSection, stepsSection,
};

}  // namespace

doc::Document runDocument(const ReportData& data) {
  doc::Document document;
  document.title = elided(data.model, kTitleLetters);
  document.lead = summaryBlocks(data);
  for (const auto& part : kParts)
    if (MaybeSection section = part(data)) document.sections.push_back(std::move(*section));
  document.about = fmt::format("Run {} of {}", data.run.id, data.projectName);
  document.notes = "times are wall clock of the worker’s monotonic clock · 1 KiB = 1,024 bytes";
  return document;
}

}  // namespace stepscope::storage
