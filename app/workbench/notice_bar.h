// SPDX-License-Identifier: GPL-3.0-or-later
// One line below the toolbar for what went wrong or stopped a run, and what to do; never a modal box.
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QWidget>
#include <functional>

namespace stepscope {

class NoticeBar : public QWidget {
  Q_OBJECT

 public:
  explicit NoticeBar(QWidget* parent = nullptr);

  // Plain text; an empty action text shows no button.
  void showProblem(const QString& text, const QString& actionText, std::function<void()> action);
  // Why a run ended. Does not cover a problem.
  void showStop(const QString& text, const QString& actionText, std::function<void()> action);
  void clearStop();
  // Work that takes longer than a second; total 0 = unknown. Does not cover a problem.
  void showProgress(const QString& text, qint64 done, qint64 total, const QString& actionText, std::function<void()> action);
  void clearProgress();
  void clear();
  QString text() const { return text_->text(); }
  bool isProblem() const { return kind_ == Kind::kProblem; }
  bool isStop() const { return kind_ == Kind::kStop; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  enum class Kind { kNone, kProgress, kStop, kProblem };
  void showText(Kind kind, const QString& text, const QString& actionText, std::function<void()> action);

  QLabel* icon_;
  QLabel* text_;
  QProgressBar* progress_;
  QPushButton* action_;
  QPushButton* close_;
  std::function<void()> run_;
  Kind kind_ = Kind::kNone;
};

}  // namespace stepscope
