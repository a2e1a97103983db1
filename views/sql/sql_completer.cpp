// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/sql/sql_completer.h"

#include <QAbstractItemView>
#include <QKeyEvent>
#include <QScrollBar>
#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kFewestLetters = 2;
const char* const kWords[] = {"SELECT", "FROM",    "WHERE",   "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "ON",
                              "AS",     "AND",     "OR",      "NOT",      "IN",       "LIKE",  "DESC", "DISTINCT",  "HAVING",
                              "COUNT",  "SUM",     "AVG",     "MIN",      "MAX",      "CASE",  "WHEN", "THEN",      "ELSE",
                              "END",    "BETWEEN", "IS NULL", "WITH",     "UNION",    "CAST",  "ROUND"};

bool isLetter(QChar c) { return c.isLetterOrNumber() || c == '_'; }

int beginOfWord(const QString& text, int place) {
  int begin = std::min<int>(place, static_cast<int>(text.size()));
  while (begin > 0 && isLetter(text[begin - 1])) --begin;
  return begin;
}

}  // namespace

SqlCompleter::SqlCompleter(QPlainTextEdit* editor, const ProjectFacts& project)
    : QObject(editor), editor_(editor), project_(project) {
  completer_.setModel(&words_);
  completer_.setWidget(editor);
  completer_.setCaseSensitivity(Qt::CaseInsensitive);
  completer_.setCompletionMode(QCompleter::PopupCompletion);
  completer_.popup()->setObjectName(QStringLiteral("sql_offers"));
  completer_.popup()->setAccessibleName(QStringLiteral("Words that fit"));
  connect(&completer_, qOverload<const QString&>(&QCompleter::activated), this, &SqlCompleter::take);
  editor->installEventFilter(this);
}

std::vector<std::pair<QString, QString>> SqlCompleter::offers(const QString& text, int place) const {
  std::vector<std::pair<QString, QString>> out;
  const int begin = beginOfWord(text, place);
  const auto tableNamed = [this](const QString& name) {
    const auto& all = project_.tables();
    const auto it = std::find_if(all.begin(), all.end(),
                                 [&name](const SqlTable& t) { return t.name.compare(name, Qt::CaseInsensitive) == 0; });
    return it == all.end() ? nullptr : &*it;
  };
  if (begin > 0 && text[begin - 1] == '.') {
    const int tableBegin = beginOfWord(text, begin - 1);
    if (const SqlTable* table = tableNamed(text.mid(tableBegin, begin - 1 - tableBegin)))
      out.insert(out.end(), table->columns.begin(), table->columns.end());
    return out;
  }
  QStringList words;
  QString word;
  for (const QChar c : text + ' ') {
    if (isLetter(c)) {
      word += c;
    } else if (!word.isEmpty()) {
      words << std::exchange(word, {});
    }
  }
  const QString before = text.left(begin).trimmed().section(' ', -1).section('\n', -1).toUpper();
  const auto addTables = [&] {
    for (const SqlTable& table : project_.tables()) out.emplace_back(table.name, table.doc);
  };
  if (before == u"FROM" || before == u"JOIN") {
    addTables();
    return out;
  }
  for (const QString& named : words)
    if (const SqlTable* table = tableNamed(named))
      for (const auto& column : table->columns)
        if (std::none_of(out.begin(), out.end(), [&column](const auto& o) { return o.first == column.first; }))
          out.push_back(column);
  addTables();
  for (const char* keyword : kWords) out.emplace_back(QLatin1String(keyword), QString());
  return out;
}

void SqlCompleter::offer(bool asked) {
  const QString text = editor_->toPlainText();
  const int place = editor_->textCursor().position(), begin = beginOfWord(text, place);
  const QString prefix = text.mid(begin, place - begin);
  const bool member = begin > 0 && text[begin - 1] == '.';
  if (!asked && !member && prefix.size() < kFewestLetters) return completer_.popup()->hide();
  words_.clear();
  for (const auto& [word, doc] : offers(text, place)) {
    auto* item = new QStandardItem(word);
    item->setToolTip(doc.toHtmlEscaped());
    words_.appendRow(item);
  }
  completer_.setCompletionPrefix(prefix);
  const int fitting = completer_.completionCount();
  // A word that is whole needs no help.
  if (fitting == 0 || (fitting == 1 && completer_.currentCompletion().compare(prefix, Qt::CaseInsensitive) == 0))
    return completer_.popup()->hide();
  completer_.popup()->setCurrentIndex(completer_.completionModel()->index(0, 0));
  QRect where = editor_->cursorRect();
  where.setWidth(completer_.popup()->sizeHintForColumn(0) + completer_.popup()->verticalScrollBar()->sizeHint().width() +
                 2 * Metrics::current().padding);
  completer_.complete(where);
}

void SqlCompleter::dismiss() {
  ++dismissed_;
  completer_.popup()->hide();
}

void SqlCompleter::take(const QString& word) {
  QTextCursor cursor = editor_->textCursor();
  const int begin = beginOfWord(editor_->toPlainText(), cursor.position());
  cursor.setPosition(begin, QTextCursor::KeepAnchor);
  cursor.insertText(word);
  editor_->setTextCursor(cursor);
}

bool SqlCompleter::eventFilter(QObject* watched, QEvent* event) {
  if (watched != editor_ || event->type() != QEvent::KeyPress) return QObject::eventFilter(watched, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  if (key->key() == Qt::Key_Space && key->modifiers() == Qt::ControlModifier) {
    offer(true);
    return true;
  }
  if (completer_.popup()->isVisible()) {
    const bool takes = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter || key->key() == Qt::Key_Tab;
    if (takes && key->modifiers() == Qt::NoModifier) {
      const QString word = completer_.popup()->currentIndex().data().toString();
      completer_.popup()->hide();
      if (!word.isEmpty()) take(word);
      return true;
    }
    if (key->key() == Qt::Key_Escape) {
      completer_.popup()->hide();
      return true;
    }
  }
  // Once the editor has taken the letter.
  if (!key->text().isEmpty() || key->key() == Qt::Key_Backspace)
    QMetaObject::invokeMethod(
        this,
        [this, before = dismissed_] {
          if (before == dismissed_) offer(false);
        },
        Qt::QueuedConnection);
  return QObject::eventFilter(watched, event);
}

}  // namespace stepscope
