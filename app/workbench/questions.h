// SPDX-License-Identifier: GPL-3.0-or-later
// Questions in small windows over the main one. None stops the program: the answer comes later, or never.
#pragma once

#include <QString>
#include <functional>

class QFileDialog;
class QWidget;

namespace stepscope {

// One number from `least` to `most`, which the dialog names; another one cannot be confirmed.
void askNumber(QWidget* parent, const QString& title, const QString& label, int value, int least, int most,
               const std::function<void(int)>& then);
// One line of text, without the spaces around it; an empty answer is none.
void askText(QWidget* parent, const QString& title, const QString& label, const QString& text, const QString& objectName,
             const std::function<void(const QString&)>& then);

// Questions for files. The two dialogs live as long as the window: the end of one waits for the thread that reads folders.
class FileQuestions {
 public:
  using Then = std::function<void(const QString& path)>;
  explicit FileQuestions(QWidget& window) : window_(window) {}

  // A file to write. The suffix of `name` is put behind a name without one.
  void askToSave(const QString& title, const QString& name, const QString& filter, const Then& then);
  void askExisting(const QString& title, const QString& filter, const Then& then);
  // As the one before, in a dialog of its own that begins in `folder`; empty: where the program was started.
  void askToOpen(const QString& title, const QString& folder, const QString& filter, const Then& then);

 private:
  QWidget& window_;
  QFileDialog* saveDialog_ = nullptr;
  Then save_;  // what its answer is for
  QFileDialog* existingDialog_ = nullptr;
  Then existing_;
};

}  // namespace stepscope
