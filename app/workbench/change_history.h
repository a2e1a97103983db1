// SPDX-License-Identifier: GPL-3.0-or-later
// Changes that can be taken back: options, elements of tensors, the arrangement of the views. GUI thread.
#pragma once

#include <QObject>
#include <QUndoStack>
#include <functional>

#include "app/workbench/layouts.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class ChangeHistory : public QObject {
  Q_OBJECT

 public:
  using Arrange = std::function<void(const ViewLayout&)>;
  // The actions "undo" and "redo" are its own. `arrange` shows an arrangement of the views.
  ChangeHistory(const WindowParts& parts, Arrange arrange);

  // What is asked for in one turn of the event loop is one change, and is taken back as one.
  void setOption(const QString& name, const QString& value);
  // The views were `from` and are `to`; nothing where they are equal.
  void rearranged(const ViewLayout& from, const ViewLayout& to);
  // Of memory, the newest one that was asked for; empty: none.
  const QString& askedLimit() const { return askedLimit_; }

 private:
  void pushOptions();
  void dropRefused(const OptionSettings& refused);

  SnapshotStore& store_;
  ModelSession& session_;
  Arrange arrange_;
  QUndoStack undo_;
  QString askedLimit_;
  OptionSettings wanted_;  // options that were asked for in this turn of the event loop
};

}  // namespace stepscope
