// SPDX-License-Identifier: GPL-3.0-or-later
// A report as PDF, drawn from its document, with its charts as vectors. Any thread.
#pragma once

#include <QString>

#include "storage/report/document.h"

namespace stepscope::print {

// A4, lying: tables have a dozen columns. Empty, or the reason why not.
QString printReport(const storage::doc::Document& document, const QString& path);

}  // namespace stepscope::print
