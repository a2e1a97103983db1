// A document as one self-contained page to read, print or send: no script, no network, light and dark.
#pragma once

#include <string>

#include "storage/report/document.h"

namespace stepscope::storage {

std::string htmlOf(const doc::Document& document);

}  // namespace stepscope::storage
