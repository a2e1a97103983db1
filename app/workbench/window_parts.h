// SPDX-License-Identifier: GPL-3.0-or-later
// What the parts of the window work with: one open model, its facts, the project file, and the widgets that every part
// speaks through. All of it outlives the parts.
#pragma once

class QWidget;

namespace stepscope {

class Actions;
class NoticeBar;
class PanelBoard;
class Recording;
class SelectionModel;
class ModelSession;
class SnapshotStore;
class StatusLine;
class Wishes;

struct WindowParts {
  QWidget& window;  // parent of dialogs
  SnapshotStore& store;
  SelectionModel& selection;
  Wishes& wishes;
  ModelSession& session;
  Recording& recording;
  Actions& actions;
  PanelBoard& board;
  NoticeBar& notice;
  StatusLine& status;
};

}  // namespace stepscope
