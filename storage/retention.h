// What a project keeps of a long run, and how a run goes out of it.
//
// The begin and end of every instruction, and the statistics of watched values, are most of a project. With the option
// record.keep = N the newest N steps of a run keep theirs, of the 16 N before them every 16th, of those before every 256th;
// by the number of the step. What was not finite stays in the alert that told of it. The recorder thins out while it writes.
// The pages that come free are written again, so a file grows no further. Thread: that of the connection.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "storage/error.h"
#include "storage/project.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

// How far a run is thinned out.
class SpanThinning {
 public:
  void keep(std::string_view option);  // the value of record.keep; "all" and what is no number keep everything
  // After step `newest` of the run was written: every few hundred steps.
  Status after(const Connection& connection, std::int64_t run, std::int64_t newest);

 private:
  std::int64_t keep_ = 0;                     // 0: all
  std::int64_t wait_ = 0;                     // steps until it thins again
  std::array<std::int64_t, 2> done_{-1, -1};  // newest step that is thinned to every 16th, to every 256th
};

// Takes the rows of a run out, within the transaction that is open; none where there is no such run. Their pages are written
// again by what comes.
Status removeRun(const Connection& connection, std::int64_t run);

// Takes a run and all that belongs to it out of the project and gives the space back to the disk. For a project that was
// opened for writing. Errors: kNotFound, kReadOnly, those of the database.
Status deleteRun(const Project& project, std::int64_t run);

// Removes the copies that migrations left beside the project once they are 30 days old. Called when it is opened for
// writing.
void removeOldBackups(const std::string& path);

}  // namespace stepscope::storage
