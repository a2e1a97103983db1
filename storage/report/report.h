// Reports of one run, by the ending of the file name:
//
//   .html            one file to read: summary, curves, start-up, passes, operators, roofline, memory map, options; no
//                    network, no script
//   .txt             the same in words and aligned tables
//   .json            everything, for programs; keys are documented in json_report.h
//   .csv             one line per step; .ops.csv operators, .instructions.csv instructions, .roofline.csv instructions
//                    compared with what the machine allows, .phases.csv start-up phases
//   .trace.json      Chrome / Kineto trace, opens in Perfetto, chrome://tracing and HTA
//
// The file is written under a temporary name and renamed, so a reader never sees half a report. Names from the model are
// escaped; folders of paths are left out. Errors: kInvalidArgument for another ending, kNotFound for the run, kIo.
#pragma once

#include <cstdint>
#include <filesystem>

#include "storage/error.h"
#include "storage/project.h"
#include "storage/report/document.h"

namespace stepscope::storage {

// `run` 0 = the newest run.
Status writeReport(const Project& project, std::int64_t run, const std::filesystem::path& path);
// Of a document that is not of one run (comparison_document.h): .html or .txt.
Status writeReport(const doc::Document& document, const std::filesystem::path& path);

}  // namespace stepscope::storage
