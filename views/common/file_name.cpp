// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/file_name.h"

#include "views/common/format.h"

namespace stepscope::format {

QString fileName(const QString& path) {
  const QString name = path.section('/', -1), folder = path.section('/', -2, -2);
  return visible(name == u"model.onnx" && !folder.isEmpty() ? folder + '/' + name : name);
}

}  // namespace stepscope::format
