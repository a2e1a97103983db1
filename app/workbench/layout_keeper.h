// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts that there are, shipped and saved, which one the board shows, and the arrangement it was left in. GUI thread.
#pragma once

#include <QObject>
#include <vector>

#include "app/workbench/layouts.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class ChangeHistory;
class Toolbar;
class WindowSettings;

class LayoutKeeper : public QObject {
  Q_OBJECT

 public:
  LayoutKeeper(const WindowParts& parts, Toolbar& toolbar, WindowSettings& settings, ChangeHistory& history);

  const QString& name() const { return name_; }  // of the layout that is shown; empty before the first
  QStringList names() const;
  bool isSaved() const;  // the one that is shown can be forgotten
  // A layout that is unknown is told above the views.
  void apply(const QString& name);
  // The same as a change that can be taken back.
  void change(const QString& name);
  // An arrangement of the views as it is, whatever is saved under its name.
  void arrange(const ViewLayout& layout);
  ViewLayout present() const;
  void remember() const;
  void restore();

 signals:
  void arranged();
  void savedChanged();  // a layout was kept or forgotten

 private:
  void keepAs(const QString& name);
  void forget();

  WindowParts parts_;
  Toolbar& toolbar_;
  WindowSettings& settings_;
  ChangeHistory& history_;
  QString name_;
  std::vector<ViewLayout> saved_;
};

}  // namespace stepscope
