// The report of a run as a document: the one place that decides what a report says. Writers say how it looks.
#pragma once

#include "storage/report/data.h"
#include "storage/report/document.h"

namespace stepscope::storage {

doc::Document runDocument(const ReportData& data);

}  // namespace stepscope::storage
