// Two runs side by side as a document: where their numbers part, and what differs in options, time and memory.
#pragma once

#include "storage/comparison.h"
#include "storage/report/document.h"

namespace stepscope::storage {

doc::Document comparisonDocument(const RunComparison& comparison, const Tolerance& tolerance);

}  // namespace stepscope::storage
