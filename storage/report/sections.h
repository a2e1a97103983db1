// The parts of the report of a run, in the order in which they appear. Each returns nothing when it has nothing to say; a
// part that could be filled says how instead.
//
// Adding one: a function here, a file for it, a line in run_document.cpp.
#pragma once

#include <optional>

#include "storage/report/data.h"
#include "storage/report/document.h"

namespace stepscope::storage {

using MaybeSection = std::optional<doc::Section>;

std::vector<doc::Block> summaryBlocks(const ReportData& data);  // facts of the run, the six numbers
MaybeSection alertsSection(const ReportData& data);             // warnings and lost data
MaybeSection lossSection(const ReportData& data);         // loss, gradient norm, learning rate, step time over the steps
MaybeSection valuesSection(const ReportData& data);       // parameters and gradients over the steps that recorded them
MaybeSection startUpSection(const ReportData& data);      // phases as flame chart and table
MaybeSection passSection(const ReportData& data);         // matches and near misses
MaybeSection timeSection(const ReportData& data);         // phases of the step
MaybeSection opsSection(const ReportData& data);          // operators by time
MaybeSection instructionSection(const ReportData& data);  // slowest instructions
MaybeSection rooflineSection(const ReportData& data);     // instructions compared with what the machine allows
MaybeSection kernelsSection(const ReportData& data);      // what a device ran, and what hardware counted of it
MaybeSection trialsSection(const ReportData& data);       // options against the step as it is, ranked
MaybeSection ledgerSection(const ReportData& data);       // what the step was spent on, and what would shrink it
MaybeSection ranksSection(const ReportData& data);        // the processes of the run, and for whom they waited
MaybeSection memorySection(const ReportData& data);       // map of the arena, persistent memory, peak by owner
MaybeSection optionsSection(const ReportData& data);
MaybeSection machineSection(const ReportData& data);  // model and machine
MaybeSection stepsSection(const ReportData& data);    // one row per step, folded

// An instruction as a cell: its whole name, where it belongs, a square in this colour.
doc::Cell instructionCell(const InstructionTime& instruction, doc::Colour colour);

}  // namespace stepscope::storage
