// One self-contained page to read, print or send: no script, no network, light and dark. See sections.h for its parts.
#pragma once

#include <string>

#include "storage/report/data.h"

namespace stepscope::storage {

std::string htmlReport(const ReportData& data);

}  // namespace stepscope::storage
