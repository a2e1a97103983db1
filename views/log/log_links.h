// SPDX-License-Identifier: GPL-3.0-or-later
// What a record of the log speaks of: the node, value or instruction that it names.
#pragma once

#include <QString>
#include <string_view>
#include <unordered_map>

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class LogLinks {
 public:
  LogLinks() = default;
  // Either may be missing; both stay alive as long as this.
  LogLinks(GraphPtr graph, PlanPtr plan);

  // The first of: a quoted name of a value or node ('h.0/MatMul'), "instruction N", "node N", "value N", each where there is
  // such a thing. Empty when nothing is named.
  Selection find(const QString& text) const;
  // How the place is called; empty for an empty selection.
  QString name(const Selection& place) const;

 private:
  Selection named(const QString& name) const;

  GraphPtr graph_;
  PlanPtr plan_;
  std::unordered_map<std::string_view, int> nodes_, values_;  // names are in graph_
};

}  // namespace stepscope
