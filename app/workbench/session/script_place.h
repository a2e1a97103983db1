// SPDX-License-Identifier: GPL-3.0-or-later
// Where an attached script is held between two passes: Position.stopped_by is then "script: train.py:31: optimizer.step()".
#pragma once

#include <string>
#include <string_view>

#include "engine/snapshot/worker.pb.h"

namespace stepscope {

inline constexpr std::string_view kScriptPlace = "script: ";

inline bool atPlace(const snapshot::Position& position) {
  return position.in_step() && std::string_view(position.stopped_by()).starts_with(kScriptPlace);
}

// What the script is about to do, at such a place.
inline std::string placeOf(const snapshot::Position& position) { return position.stopped_by().substr(kScriptPlace.size()); }

}  // namespace stepscope
