// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/instructions/instruction_filter.h"

#include <QHash>
#include <algorithm>

namespace stepscope {
namespace {

std::vector<QRegularExpression> wildcards(const QString& list, bool whole) {
  std::vector<QRegularExpression> out;
  for (const QString& word : list.split(',', Qt::SkipEmptyParts)) {
    QString pattern = QRegularExpression::escape(word);
    pattern.replace(QStringLiteral("\\*"), QStringLiteral(".*"));
    if (whole || word.contains('*')) pattern = QRegularExpression::anchoredPattern(pattern);
    out.emplace_back(pattern, QRegularExpression::CaseInsensitiveOption);
  }
  return out;
}

bool any(const std::vector<QRegularExpression>& patterns, const QString& text) {
  return std::any_of(patterns.begin(), patterns.end(), [&text](const auto& p) { return p.match(text).hasMatch(); });
}

bool anyOf(const std::vector<QRegularExpression>& patterns, const QStringList& texts) {
  return std::any_of(texts.begin(), texts.end(), [&patterns](const QString& t) { return any(patterns, t); });
}

const QStringList kNumbers = {QStringLiteral("bytes"), QStringLiteral("read"), QStringLiteral("flops"),
                              QStringLiteral("time"), QStringLiteral("index")};
const QStringList kProperties = {QStringLiteral("view"), QStringLiteral("break"), QStringLiteral("ran"),
                                 QStringLiteral("random")};

}  // namespace

bool parseQuantity(const QString& text, bool time, double* value) {
  static const QRegularExpression kForm(QStringLiteral("^([0-9]*\\.?[0-9]+(?:e[+-]?[0-9]+)?)\\s*([a-zµ]*)$"),
                                        QRegularExpression::CaseInsensitiveOption);
  const auto match = kForm.match(text.trimmed());
  if (!match.hasMatch()) return false;
  bool ok = false;
  const double number = match.captured(1).toDouble(&ok);
  const QString unit = match.captured(2).toLower();
  if (!ok) return false;
  static const QHash<QString, double> kTime = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  static const QHash<QString, double> kSize = {{"", 1},     {"b", 1},      {"k", 1e3},       {"m", 1e6},
                                               {"g", 1e9},  {"kib", 1024}, {"mib", 1048576}, {"gib", 1073741824},
                                               {"kb", 1e3}, {"mb", 1e6},   {"gb", 1e9}};
  const auto& units = time ? kTime : kSize;
  const auto it = units.find(unit);
  if (it == units.end()) return false;
  *value = number * *it;
  return true;
}

InstructionFilter InstructionFilter::parse(const QString& text, QString* error) {
  InstructionFilter filter;
  error->clear();
  static const QHash<QString, Kind> kTexts = {{"op", Kind::kOp},         {"phase", Kind::kPhase},
                                              {"module", Kind::kModule}, {"impl", Kind::kImplementation},
                                              {"in", Kind::kIn},         {"out", Kind::kOut}};
  static const QRegularExpression kCompared(QStringLiteral("^([a-z]+)(>=|<=|>|<|=)(.+)$"),
                                            QRegularExpression::CaseInsensitiveOption);
  static const QRegularExpression kWord(QStringLiteral("^[a-z]+$"));
  for (QString word : text.split(' ', Qt::SkipEmptyParts)) {
    Term term;
    if (word.size() > 1 && word.startsWith('-')) {
      term.negated = true;
      word.remove(0, 1);
    }
    if (const auto match = kCompared.match(word); match.hasMatch() && kNumbers.contains(match.captured(1).toLower())) {
      term.kind = Kind::kNumber;
      term.word = match.captured(1).toLower();
      term.comparison = match.captured(2);
      if (!parseQuantity(match.captured(3), term.word == u"time", &term.number)) {
        *error =
            QStringLiteral("%1: '%2' is no number; expected one such as %3")
                .arg(term.word, match.captured(3), term.word == u"time" ? QStringLiteral("100us") : QStringLiteral("1MiB"));
        return filter;
      }
      filter.terms_.push_back(term);
      continue;
    }
    const auto colon = word.indexOf(':');
    const QString key = colon > 0 ? word.left(colon).toLower() : QString();
    const QString value = colon > 0 ? word.mid(colon + 1) : QString();
    if (kTexts.contains(key)) {
      if (value.isEmpty()) continue;  // still being typed
      term.kind = kTexts[key];
      term.patterns = wildcards(value, term.kind == Kind::kOp);
    } else if (key == u"is") {
      term.kind = Kind::kIs;
      term.word = value.toLower();
      if (value.isEmpty()) continue;
      if (!kProperties.contains(term.word)) {
        *error = QStringLiteral("is: '%1'; expected one of %2").arg(value, kProperties.join(QStringLiteral(", ")));
        return filter;
      }
    } else if (kNumbers.contains(word.toLower()) || kNumbers.contains(key)) {
      *error = QStringLiteral("%1: expected a comparison such as %1>1000").arg(key.isEmpty() ? word.toLower() : key);
      return filter;
    } else if (kWord.match(key).hasMatch() && !value.isEmpty() && !value[0].isDigit()) {
      // Names of values may end in a colon and a number; anything else with a colon is meant as a key.
      *error = QStringLiteral("%1: no such key; expected one of %2").arg(key, keys().join(QStringLiteral(", ")));
      return filter;
    } else {
      term.kind = Kind::kText;
      term.word = word;
    }
    filter.terms_.push_back(term);
  }
  return filter;
}

bool InstructionFilter::matches(const Term& t, const InstructionFacts& f) {
  switch (t.kind) {
    case Kind::kText: return f.text.contains(t.word, Qt::CaseInsensitive);
    case Kind::kOp: return any(t.patterns, f.op);
    case Kind::kPhase: return any(t.patterns, f.phase);
    case Kind::kModule: return any(t.patterns, f.module);
    case Kind::kImplementation: return any(t.patterns, f.implementation);
    case Kind::kIn: return anyOf(t.patterns, f.inputs);
    case Kind::kOut: return anyOf(t.patterns, f.outputs);
    case Kind::kIs:
      return t.word == u"view" ? f.view : t.word == u"break" ? f.breakpoint : t.word == u"random" ? f.random : f.ran;
    case Kind::kNumber: {
      const double x = t.word == u"bytes"   ? f.bytes
                       : t.word == u"read"  ? f.read
                       : t.word == u"flops" ? f.flops
                       : t.word == u"time"  ? f.ns
                                            : f.index;
      if (t.word == u"time" && x < 0) return false;
      if (t.comparison == u">") return x > t.number;
      if (t.comparison == u"<") return x < t.number;
      if (t.comparison == u">=") return x >= t.number;
      if (t.comparison == u"<=") return x <= t.number;
      return x == t.number;
    }
  }
  return false;
}

bool InstructionFilter::matches(const InstructionFacts& facts) const {
  return std::all_of(terms_.begin(), terms_.end(), [&facts](const Term& t) { return matches(t, facts) != t.negated; });
}

QStringList InstructionFilter::keys() {
  QStringList keys = {QStringLiteral("op:"),   QStringLiteral("phase:"), QStringLiteral("module:"),
                      QStringLiteral("impl:"), QStringLiteral("in:"),    QStringLiteral("out:")};
  for (const QString& n : kNumbers) keys << n + '>';
  for (const QString& p : kProperties) keys << QStringLiteral("is:") + p;
  return keys;
}

QString InstructionFilter::help() {
  return QStringLiteral(
      "op:MatMul,Gemm   operator, * is a wildcard\n"
      "phase:backward   forward, backward, recompute, optimizer\n"
      "module:h.3*   module path        impl:onednn   implementation\n"
      "in:wte.weight   out:loss   names of operands\n"
      "bytes>1MiB   read>4k   flops>1e9   time>100us   index<400\n"
      "is:view   is:break   is:ran   is:random\n"
      "-op:Reshape   all but these        any other word: part of the line");
}

}  // namespace stepscope
