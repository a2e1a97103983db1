// A drawing as inline SVG of the HTML report: roles are classes of its sheet, readings show themselves under the pointer
// without any script.
#pragma once

#include <string>

#include "storage/report/drawing.h"

namespace stepscope::storage {

std::string svgOf(const doc::Drawing& drawing);

}  // namespace stepscope::storage
