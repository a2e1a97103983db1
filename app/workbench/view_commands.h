// SPDX-License-Identifier: GPL-3.0-or-later
// The actions on the views: find, focus, groups, pictures, which view to look at; theme and size of text. GUI thread.
#pragma once

#include <QElapsedTimer>
#include <QObject>

#include "app/workbench/window_parts.h"

namespace stepscope {

class FileQuestions;
class View;
class WindowSettings;

class ViewCommands : public QObject {
  Q_OBJECT

 public:
  ViewCommands(const WindowParts& parts, FileQuestions& questions, const WindowSettings& settings);

 signals:
  void themeChanged();

 private:
  void connectViews();
  void connectGroups();
  void connectPictures();
  void connectLook();
  View* viewWithGroups() const;  // the active one, or one next to it: all show the same selection
  void focusOrFit();
  void savePicture(View& view, const QString& path);
  void switchTheme();
  void scaleText(double factor);  // 0: the system's size

  WindowParts parts_;
  FileQuestions& questions_;
  const WindowSettings& settings_;
  QElapsedTimer focused_;  // since "focus" was asked for
};

}  // namespace stepscope
