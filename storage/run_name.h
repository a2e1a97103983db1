// The name of a run: what people tell runs of a project apart by.
#pragma once

#include <cstdint>
#include <string>

#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

// Gives a run of a project that was opened for writing another name. One that is recorded is named by its Recorder.
// Errors: kNotFound, kReadOnly, those of the database.
Status nameRun(const Project& project, std::int64_t run, const std::string& name);

}  // namespace stepscope::storage
