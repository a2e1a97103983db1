// SPDX-License-Identifier: GPL-3.0-or-later
// One box for everything by name: nodes and tensors, ">" commands, ":" SQL.
#pragma once

#include <QAction>
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPointer>

#include "views/common/view.h"
#include "views/palette/finder.h"

namespace stepscope {

class Palette : public QFrame {
  Q_OBJECT

 public:
  // `actions` are the commands; they outlive the palette.
  Palette(const ViewContext& context, QList<QAction*> actions, QWidget* parent);

  // Opens over the upper middle of the parent with this text: "", ">" or ":".
  void open(const QString& text);
  int resultCount() const { return list_->count(); }

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  void search();
  void choose();
  void index();
  void dismiss();  // the keyboard goes back to where it was

  ViewContext context_;
  QList<QAction*> actions_;
  QLineEdit* box_;
  QListWidget* list_;
  QLabel* hint_;
  std::shared_ptr<const Finder> finder_;
  std::vector<Found> found_;
  QPointer<QWidget> before_;  // had the keyboard when the palette was opened
  bool indexing_ = false;
  bool stale_ = true;
};

}  // namespace stepscope
