// SPDX-License-Identifier: GPL-3.0-or-later
// Whether steps follow each other until something stops them. While they do, a view need not show each of them: what passes
// by cannot be read. Lives with the store; a view that does not care does not know it.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

class Running : public QObject {
  Q_OBJECT

 public:
  explicit Running(SnapshotStore* store) : QObject(store) {}
  static Running& of(SnapshotStore& store);
  static const Running& of(const SnapshotStore& store);

  bool on() const { return on_; }
  void set(bool on);  // by the workbench only

 signals:
  void changed();

 private:
  bool on_ = false;
};

}  // namespace stepscope
