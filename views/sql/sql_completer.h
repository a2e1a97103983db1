// SPDX-License-Identifier: GPL-3.0-or-later
// Offers the tables, columns and words of SQL that fit what is being typed: after "FROM" and "JOIN" tables, behind "table."
// the columns of that table, elsewhere the columns of the tables that the query names. Tab and Enter take one, Esc closes,
// Ctrl+Space asks for it.
#pragma once

#include <QCompleter>
#include <QPlainTextEdit>
#include <QStandardItemModel>

#include "views/common/project_facts.h"

namespace stepscope {

class SqlCompleter : public QObject {
  Q_OBJECT

 public:
  // Both outlive it.
  SqlCompleter(QPlainTextEdit* editor, const ProjectFacts& project);

  // What is offered at `place` of the text, in the order of the list, with the documentation of each.
  std::vector<std::pair<QString, QString>> offers(const QString& text, int place) const;

  // Nothing is offered until the next letter: the query is asked.
  void dismiss();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void offer(bool asked);
  void take(const QString& word);

  QPlainTextEdit* editor_;
  const ProjectFacts& project_;
  QStandardItemModel words_;
  QCompleter completer_;
  int dismissed_ = 0;  // how often; offers that were on their way before come no more
};

}  // namespace stepscope
