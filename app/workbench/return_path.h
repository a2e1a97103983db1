// SPDX-License-Identifier: GPL-3.0-or-later
// What a window leaves behind that ended by itself, and the way back to where one stood: model, step, instruction, layout,
// selection. GUI thread.
#pragma once

#include <QObject>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>

#include "app/workbench/layouts.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session_mark.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class ModelOpening;

class ReturnPath : public QObject {
  Q_OBJECT

 public:
  struct Views {
    std::function<ViewLayout()> present;
    std::function<void(const ViewLayout&)> arrange;
  };
  // `remember`: else nothing is kept and nothing is offered.
  ReturnPath(const WindowParts& parts, ModelOpening& opening, Views views, bool remember);

  // Says above the views what a window that did not end as it should had open, with the way back. `path`: of this model
  // alone, which is opened; empty: of any.
  void offer(const QString& path = {});
  // It did of this model, and the way is to run its steps again.
  bool offered(const QString& path) const { return offered_ && offered_->path == path; }
  void drop();  // this window ends as it should
  // Where a model stands that is built.
  SessionPlace present() const;
  // Opens it and goes there: with its state, where the place has one, else its steps are run again.
  void goBack(const SessionPlace& place);

 private:
  void keep();
  QByteArray layout() const;
  void goOn();
  std::vector<SessionEdits::Edit> edits();  // of the place, in the plan that is shown; says what has no place there

  WindowParts parts_;
  ModelSession& session_;
  SnapshotStore& store_;
  ModelOpening& opening_;
  Views views_;
  std::unique_ptr<SessionMark> mark_;  // null: nothing is remembered
  QTimer timer_;
  std::optional<SessionPlace> back_;  // on the way to it
  std::optional<SessionPlace> offered_;
  int moves_ = 0;  // made so far: to the step, to the instruction
};

}  // namespace stepscope
