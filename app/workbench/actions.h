// SPDX-License-Identifier: GPL-3.0-or-later
// Every action of the window, made once from one table: menus, toolbar, palette and key help are all drawn from it.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QList>
#include <QObject>
#include <vector>

class QWidget;

namespace stepscope {

struct ActionEntry {
  const char* id;     // object name
  const char* group;  // "File", "Run", "Select", "View", "Tools", "Help": menu and heading in the key help
  const char* text;
  const char* shortcut;  // portable form, several separated by "; "
  const char* icon;      // of views/common/icons.h; empty none
  const char* tip;       // one sentence
};

class Actions : public QObject {
  Q_OBJECT

 public:
  // Adds all actions to `window` so that their shortcuts work in the whole window.
  explicit Actions(QWidget* window);

  // The action with this id; it is a bug of ours to ask for one that is not in the table.
  QAction* operator[](const QString& id) const;
  QAction* find(const QString& id) const;  // nullptr when there is none
  const QList<QAction*>& all() const { return all_; }
  static const std::vector<ActionEntry>& table();
  static QString groupOf(const QAction* action);
  // Adds an action that is not in the table (a recent project, a view, a layout).
  QAction* add(const QString& id, const QString& group, const QString& text, const QString& tip);

 private:
  QWidget* window_;
  QList<QAction*> all_;
};

}  // namespace stepscope
