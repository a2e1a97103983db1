// SPDX-License-Identifier: GPL-3.0-or-later
// What a file is called where there is no room for its path.
#pragma once

#include <QString>

namespace stepscope::format {

// The last part of the path, visible as names are; a "model.onnx", as most are called, with its folder before it.
QString fileName(const QString& path);

}  // namespace stepscope::format
