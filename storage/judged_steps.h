// The one definition of which steps say how fast a step is: no rewind took them back, nobody stopped in them, they are not
// warm-up as long as the run has steps after it, and not walked instruction by instruction as long as it has others.
// Whatever judges steps.ns reads these: reports, comparisons of runs, and the user's SQL.
//
// A project file holds no views (a foreign one could hide anything in one), so every connection makes it for itself, as the
// table `judged_steps` with the columns of `steps`.
#pragma once

#include <string_view>

#include "storage/error.h"
#include "storage/schema.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

// How steps ran, which their times depend on: the column `speed` of `steps`.
inline constexpr std::string_view kFullSpeed = "full speed", kRecorded = "recorded", kWatched = "watched",
                                  kWalked = "walked";

// For a file of this schema version. A reader's connection stays one that writes nothing.
Status makeJudgedSteps(const Connection& connection, int version, bool reader);

// SQL of a row of `steps`: 1 when somebody stopped in it. Before version 5 only an alert with its number says so.
std::string_view stoppedIn(int version);

// SQL of a row of `steps`: cpu_ns, wait_ns, speed. Before version 6 there is no processor time, and spans tell the speed.
std::string_view processorAndSpeed(int version);

// Its documentation, as that of a table in a file.
Table judgedStepsTable();

}  // namespace stepscope::storage
