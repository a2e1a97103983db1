// Tables as RFC 4180 CSV: comma, CRLF, one header line, "." as decimal point, times in nanoseconds, sizes in bytes.
// NaN and infinities are written as NaN, Infinity, -Infinity; what was not computed is an empty field. When parameters are
// not the model's (storage/weights_mark.h), a last column `weights` says so in every row.
#pragma once

#include <string>

#include "storage/report/data.h"

namespace stepscope::storage {

std::string stepsCsv(const ReportData& data);
std::string opsCsv(const ReportData& data);
std::string instructionsCsv(const ReportData& data);
std::string rooflineCsv(const ReportData& data);  // instructions that have a roof
std::string phasesCsv(const ReportData& data);

}  // namespace stepscope::storage
