// SPDX-License-Identifier: GPL-3.0-or-later
// Traces of PyTorch's profiler beside a recorded run, for the view of times per operator. Any thread.
#pragma once

#include <QString>
#include <cstdint>

#include "storage/project.h"
#include "views/common/pytorch_times.h"

namespace stepscope {

// The newest that was imported; empty: none.
PyTorchTimes::Rows readPyTorchTimes(const storage::Project& project, std::int64_t run);

struct PyTorchImport {
  PyTorchTimes::Rows rows;
  QString text;  // what was joined, for people; hostile names
};

// `keep`: the rows go into the project, as `stepscope import` writes them. Run 0 is the newest.
storage::Result<PyTorchImport> importPyTorchTrace(const QString& project, std::int64_t run, const QString& trace, bool keep);

}  // namespace stepscope
