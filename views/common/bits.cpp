// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/bits.h"

#include "views/common/format.h"

namespace stepscope {

QString bitsText(const snapshot::Determinism& node) {
  switch (bitsOf(node)) {
    case Bits::kSame: return QStringLiteral("The bits are the same in every run");
    case Bits::kOfThreads: return QStringLiteral("The last bits depend on the number of threads");
    case Bits::kMayDiffer: return QStringLiteral("The last bits may differ from run to run");
    case Bits::kNotKnown: break;
  }
  return QStringLiteral("Whether the bits are the same in every run is not known yet");
}

QString bitsMeaning(const snapshot::Determinism& node) {
  const QString reason = node.reason().empty() ? QString() : QStringLiteral("\nWhy: ") + format::visible(node.reason());
  switch (bitsOf(node)) {
    case Bits::kSame: return QStringLiteral("The same build, machine and inputs give the same bits.") + reason;
    case Bits::kOfThreads:
      return QStringLiteral(
                 "The same number of threads gives the same bits in every run. Another number adds in another order, and "
                 "the last bits may change. Nothing is wrong.") +
             reason;
    case Bits::kMayDiffer:
      return QStringLiteral("Two runs with the same build, machine and inputs may round differently.") + reason;
    case Bits::kNotKnown: break;
  }
  return QStringLiteral("The kernel says it when it has run.") + reason;
}

}  // namespace stepscope
