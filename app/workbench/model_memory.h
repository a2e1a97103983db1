// SPDX-License-Identifier: GPL-3.0-or-later
// Heat, filters, opened groups and what a run breaks on belong to a model: another one begins with its own, or with none.
// GUI thread.
#pragma once

#include <QHash>
#include <QObject>

#include "app/workbench/window_parts.h"

namespace stepscope {

class ToolbarFacts;
class WindowSettings;

class ModelMemory : public QObject {
  Q_OBJECT

 public:
  ModelMemory(const WindowParts& parts, ToolbarFacts& breaks, WindowSettings& settings);

  // What a view that is made now begins with; `stored`: what the settings have for it, of the model that was open last.
  QString stateFor(const QString& view, const QString& stored) const;
  // What of the state of a view outlives the window: a filter does not, which would hide things that nobody remembers.
  static QString lasting(const QString& view, const QString& state);
  // Which model the states in the settings are of; to be called when they are written.
  void remember();

 private:
  struct Kept {
    QHash<QString, QString> views;  // states by id
    bool nan = true, inf = true;    // stop a run
  };

  void changeTo(const QString& model);
  void restoreBreaks();
  bool breaksOn(int condition) const;

  WindowParts parts_;
  ToolbarFacts& breaks_;
  WindowSettings& settings_;
  QString stored_;  // the model that the states in the settings are of
  QString model_;   // that the views show; stored_ until one is opened
  QHash<QString, Kept> kept_;
};

}  // namespace stepscope
