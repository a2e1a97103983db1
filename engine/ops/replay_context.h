// What the rule of CustomGradient asks of the gradient phase: its gradient stands in the graph already, as forward nodes
// that compute it from a stand-in. A GradientContext of that phase is one of these too.
#pragma once

#include "engine/ir/graph.h"

namespace stepscope {

class ReplayContext {
 public:
  virtual ~ReplayContext() = default;
  // Emits again, for the backward phase, those forward nodes before the node at hand through which `value` depends on
  // `placeholder`, with `instead` in its place. Returns what stands for `value`; `value` itself where it does not depend.
  virtual ValueId replayed(ValueId value, ValueId placeholder, ValueId instead) = 0;
};

}  // namespace stepscope
