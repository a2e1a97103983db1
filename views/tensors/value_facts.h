// SPDX-License-Identifier: GPL-3.0-or-later
// What the shown value is: role, maker, buffer and lifetime; and where it has no contents now, why and what brings them.
#pragma once

#include "views/common/details.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

// Commands: "runpast:INSTRUCTION", "pin".
class ValueFacts : public Details {
  Q_OBJECT

 public:
  explicit ValueFacts(const SnapshotStore& store, QWidget* parent = nullptr);
  void showValue(int value);

 private:
  const SnapshotStore& store_;
};

}  // namespace stepscope
