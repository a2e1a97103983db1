// SPDX-License-Identifier: GPL-3.0-or-later
// What the verdict on a node says of its bits, by the words that run.proto lists.
#pragma once

#include "engine/snapshot/run.pb.h"

namespace stepscope {

enum class Bits { kSame, kMayDiffer, kNotKnown };

inline Bits bitsOf(const snapshot::Determinism& node) {
  const std::string& verdict = node.verdict();
  if (verdict == "deterministic" || verdict == "deterministic, keyed random") return Bits::kSame;
  return verdict == "not known yet" ? Bits::kNotKnown : Bits::kMayDiffer;
}

}  // namespace stepscope
