// SPDX-License-Identifier: GPL-3.0-or-later
// What the verdict on a node says of its bits, by the words that run.proto lists.
#pragma once

#include <QString>

#include "engine/snapshot/run.pb.h"

namespace stepscope {

// kOfThreads: the same for one number of threads, which is what a run has.
enum class Bits { kSame, kOfThreads, kMayDiffer, kNotKnown };

inline Bits bitsOf(const snapshot::Determinism& node) {
  const std::string& verdict = node.verdict();
  if (verdict == "deterministic" || verdict == "deterministic, keyed random") return Bits::kSame;
  if (verdict == "depends on thread count") return Bits::kOfThreads;
  return verdict == "not known yet" ? Bits::kNotKnown : Bits::kMayDiffer;
}

// Of the values of a node as a sentence, "The last bits depend on the number of threads", and what that means with the
// kernel's reason; plain text.
QString bitsText(const snapshot::Determinism& node);
QString bitsMeaning(const snapshot::Determinism& node);

}  // namespace stepscope
