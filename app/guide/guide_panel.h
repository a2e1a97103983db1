// SPDX-License-Identifier: GPL-3.0-or-later
// The guide beside the views: a page, a line to search all of them, back and forward over what was read. GUI thread.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "app/guide/guide_text.h"

namespace stepscope {

class GuidePanel : public QWidget {
  Q_OBJECT

 public:
  explicit GuidePanel(QWidget* parent = nullptr);

  // A page that does not exist shows the first one.
  void open(const QString& pageId);
  void goBack();
  void goForward();
  // What is shown; empty while the pages that were found are.
  const QString& page() const { return page_; }

 signals:
  void sampleWanted(const QString& name);
  void actionWanted(const QString& actionId);
  void closeWanted();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Place {
    QString page;
    int scroll = 0;
  };

  QToolButton* button(const char* iconName, const char* objectName, const QString& name);
  void follow(const GuideLink& link);
  void search(const QString& question);
  void display(const Place& place);
  void note();  // where the page stands that is left
  void updateButtons();

  QToolButton *back_, *forward_;
  QLineEdit* find_;
  GuideText* text_;
  QString page_;
  std::vector<Place> visited_;
  std::size_t at_ = 0;  // of visited_
};

}  // namespace stepscope
