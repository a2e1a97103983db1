// The one definition of which steps say how fast a step is: nobody stopped in them, and they are not warm-up as long as the
// run has steps after it. Whatever judges steps.ns reads these: reports, comparisons of runs, and the user's SQL.
//
// A project file holds no views (a foreign one could hide anything in one), so every connection makes it for itself, as the
// table `judged_steps` with the columns of `steps`.
#pragma once

#include <string_view>

#include "storage/error.h"
#include "storage/schema.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

// For a file of this schema version. A reader's connection stays one that writes nothing.
Status makeJudgedSteps(const Connection& connection, int version, bool reader);

// SQL of a row of `steps`: 1 when somebody stopped in it. Before version 5 only an alert with its number says so.
std::string_view stoppedIn(int version);

// Its documentation, as that of a table in a file.
Table judgedStepsTable();

}  // namespace stepscope::storage
