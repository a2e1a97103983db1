// SPDX-License-Identifier: GPL-3.0-or-later
// One line below the toolbar for what went wrong or stopped a run, and what to do; never a modal box. What holds for longer
// stands there while nothing else does, and comes back after it.
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QStringList>
#include <QWidget>
#include <functional>
#include <vector>

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
  // What holds until clearStanding(); the newest text of an `id` counts. Once it was closed it does not come back before it
  // was cleared. A fault looks like a problem.
  enum class Standing { kFact, kFault };
  void stand(const QString& id, Standing kind, const QString& text, const QString& actionText, std::function<void()> action);
  void clearStanding(const QString& id);
  bool stands(const QString& id) const;  // it is on the screen
  QString text() const { return text_->text(); }
  bool isProblem() const { return kind_ == Kind::kProblem; }
  bool isStop() const { return kind_ == Kind::kStop; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  enum class Kind { kNone, kProgress, kStop, kProblem, kFact, kFault };
  struct Stand {
    QString id;
    Kind kind = Kind::kFact;
    QString text, actionText;
    std::function<void()> action;
  };
  void showText(Kind kind, const QString& text, const QString& actionText, std::function<void()> action);
  bool standing() const { return kind_ == Kind::kFact || kind_ == Kind::kFault; }
  void showStanding();
  void dismiss();

  QLabel* icon_;
  QLabel* text_;
  QProgressBar* progress_;
  QPushButton* action_;
  QPushButton* close_;
  std::function<void()> run_;
  Kind kind_ = Kind::kNone;
  std::vector<Stand> stands_;  // faults first
  QStringList closed_;         // of those that hold
};

}  // namespace stepscope
