// The parts of the HTML report, in the order in which they appear. Each returns a whole <section>, or an empty string when
// it has nothing to say (a part that could be filled says how instead).
//
// Adding one: a function here, a file for it, a line in html_report.cpp.
#pragma once

#include <string>
#include <string_view>

#include "storage/report/data.h"

namespace stepscope::storage {

std::string summarySection(const ReportData& data);      // title, facts of the run, the six numbers
std::string alertsSection(const ReportData& data);       // warnings and lost data
std::string lossSection(const ReportData& data);         // loss, gradient norm, learning rate, step time over the steps
std::string valuesSection(const ReportData& data);       // parameters and gradients over the steps that recorded them
std::string startUpSection(const ReportData& data);      // phases as flame chart and table
std::string passSection(const ReportData& data);         // matches and near misses
std::string timeSection(const ReportData& data);         // phases of the step
std::string opsSection(const ReportData& data);          // operators by time
std::string instructionSection(const ReportData& data);  // slowest instructions
std::string rooflineSection(const ReportData& data);     // instructions compared with what the machine allows
std::string trialsSection(const ReportData& data);       // options against the step as it is, ranked
std::string ledgerSection(const ReportData& data);       // what the step was spent on, and what would shrink it
std::string memorySection(const ReportData& data);       // map of the arena, persistent memory, peak by owner
std::string optionsSection(const ReportData& data);
std::string machineSection(const ReportData& data);  // model and machine
std::string stepsSection(const ReportData& data);    // one row per step, folded

// <section id><h2>title</h2><p class=sub>…</p>body</section>; `sub` is HTML.
std::string section(std::string_view id, std::string_view title, std::string_view sub, std::string_view body);
std::string emptyNote(std::string_view text);  // plain text

// Table cells. Raw values are in the tooltip.
std::string timeCell(double ns);
std::string bytesCell(std::int64_t bytes);
// The bar is as long as the share is of `largest`, so that a table of small shares still compares.
std::string shareCell(double share, std::string_view colour = "accent", double largest = 1);
// Header cell: numbers are right aligned; the tooltip defines the quantity and its unit.
std::string head(std::string_view label, std::string_view tooltip, bool number = true);
// Names of our own colour tokens: only these may become part of a style.
std::string_view categoryToken(std::string_view category);
std::string_view phaseToken(std::string_view phase);
// "12.3 GB/s" from an amount per execution of `ns`; empty when one of them is not above 0.
std::string rate(double amount, double ns, const char* unit);
std::string statsHead();  // n, total, mean, median, p95, min, max
std::string statsCells(const TimeStats& stats);

}  // namespace stepscope::storage
