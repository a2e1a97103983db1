// SPDX-License-Identifier: GPL-3.0-or-later
// Settings as the set-up takes and gives them, and words about the model it is for.
#pragma once

#include <QString>
#include <string>
#include <utility>
#include <vector>

#include "engine/snapshot/worker.pb.h"

namespace stepscope {

// Names and values in order. An option that was changed while the model was built stands as set NAME=VALUE in the
// configuration and as NAME here; the last one of a name counts, but those that add up.
std::vector<std::pair<std::string, std::string>> settingsOf(const snapshot::Configure& configuration);

// Whether the first page of the form has a field for the setting.
bool hasField(const std::string& setting);

// Reasons from the engine are parts of sentences; here each stands alone.
QString sentence(QString text);

// What the symbolic extents of the inputs are, and why.
QString dimensionsText(const snapshot::ModelInfo& model, bool fromData);

}  // namespace stepscope
