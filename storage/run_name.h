// The name of a run: what people tell runs of a project apart by.
#pragma once

#include <cstdint>
#include <string>

#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

// Who changes a run asks it first. Errors: kReadOnly for a project that was opened for reading, kNotFound for a run that is
// not in it, those of the database.
Status checkRunWritable(const Project& project, std::int64_t run);

// Gives a run of a project that was opened for writing another name. One that is recorded is named by its Recorder.
// Errors: those of checkRunWritable().
Status nameRun(const Project& project, std::int64_t run, const std::string& name);

}  // namespace stepscope::storage
