// Edits of a graph are logged under the pass that makes them.
#pragma once

#include <string_view>

#include "engine/ir/graph.h"

namespace stepscope {

// While it lives, edits are logged under `pass`; afterwards under the pass that was current before.
class PassScope {
 public:
  PassScope(Graph& graph, std::string_view pass) : graph_(graph), before_(graph.pass()) { graph_.setPass(pass); }
  ~PassScope() { graph_.setPass(before_); }
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;

 private:
  Graph& graph_;
  InternedText before_;
};

}  // namespace stepscope
