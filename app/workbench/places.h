// SPDX-License-Identifier: GPL-3.0-or-later
// What a path means that somebody opens.
#pragma once

#include <QString>

namespace stepscope {

struct Place {
  QString path;     // absolute, of a file
  QString problem;  // empty, or why nothing can be opened there, and what can
};

bool isProject(const QString& path);  // by its name

// A file; of a folder its model: model.onnx, or the only .onnx in it, as captures have it; without a model the only project
// in it. Looks at the file system: short.
Place placeToOpen(const QString& path);

// A copy in `folder` of a project with what its writer left next to it, which nobody can read in a folder that cannot be
// written. Empty where nothing was left or the copy fails.
QString copyWithRest(const QString& project, const QString& folder);

}  // namespace stepscope
