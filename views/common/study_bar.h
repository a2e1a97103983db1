// SPDX-License-Identifier: GPL-3.0-or-later
// What stands around a study in every view: the button that starts it and, while it runs, cancels it; what is done now and
// how far it is; why it has no answer. The view places the button among its fields, and the bar below them.
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QWidget>

#include "views/common/study.h"
#include "views/common/wishes.h"

namespace stepscope {

struct StudyWords {
  QString start, startTip;  // of the button before it runs
  QString cancelTip;        // what cancelling keeps
  QString progress;         // accessible name of the progress
  QString first;            // done until the worker says what it does; may be empty
};

class StudyBar : public QWidget {
  Q_OBJECT

 public:
  // Object names: `id`_what, `id`_progress, `id`_problem; the button is named by the view. All outlive it.
  StudyBar(const char* id, const Study& study, Wishes& wishes, StudyWords words, QWidget* parent = nullptr);

  QPushButton* button() const { return button_; }  // the view places it, once
  void press();  // as the button is: cancels what runs, or wants a start where one is possible
  // Shows the study as it is. `possible`: one can begin; `fault`: why not, in place of the problem of the newest; hostile.
  void follow(bool possible, const QString& fault = {});

 signals:
  void startWanted();

 private:
  const Study& study_;
  Wishes& wishes_;
  StudyWords words_;
  QPushButton* button_;
  QLabel *what_, *problem_;
  QProgressBar* progress_;
};

}  // namespace stepscope
