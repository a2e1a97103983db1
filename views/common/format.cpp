// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/snapshot/units.h"

namespace stepscope::format {
namespace {

constexpr double kMostTail = 0.66;  // of the width of an elided name
constexpr qsizetype kSentenceSpaces = 3, kSentenceEnd = 14;

bool separates(QChar c) { return c == '.' || c == '/' || c == '_' || c == ':' || c == ' '; }

// Words that end in a path are a name with something in front of it.
bool isSentence(const QString& text) {
  return text.count(' ') >= kSentenceSpaces && text.size() - text.lastIndexOf(' ') < kSentenceEnd;
}

// Where a word begins, first to last: after a separator, at a capital.
std::vector<qsizetype> wordStarts(const QString& text) {
  std::vector<qsizetype> starts;
  for (qsizetype i = 1; i < text.size(); ++i) {
    if (separates(text[i]) || text[i].isLowSurrogate()) continue;
    const QChar last = text[i - 1];
    if (last == '.' && text[i].isDigit()) continue;  // it numbers the part before it, "h.11"
    if (separates(last) || (text[i].isUpper() && !last.isUpper())) starts.push_back(i);
  }
  return starts;
}

QString textOf(const std::string& text) { return QString::fromStdString(text); }

}  // namespace

QString time(std::int64_t ns) { return ns < 0 ? QStringLiteral("–") : textOf(units::time(ns)); }

QString timeExact(std::int64_t ns) { return count(ns) + QStringLiteral(" ns"); }

QString bytes(std::int64_t n) { return n < 0 ? QStringLiteral("–") : textOf(units::bytes(n)); }

std::optional<qint64> bytesOf(const QString& text) {
  static const std::pair<const char*, double> kUnits[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                                                          {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
                                                          {"B", 1},        {"", 1}};
  const QString trimmed = text.trimmed();
  for (const auto& [unit, factor] : kUnits) {
    if (!trimmed.endsWith(QLatin1String(unit))) continue;
    bool ok = false;
    const QString digits = trimmed.left(trimmed.size() - QLatin1String(unit).size()).trimmed();
    const double number = digits.toDouble(&ok);
    if (!ok || !(number >= 0) || number * factor > 0x1p62) return std::nullopt;
    return qRound64(number * factor);
  }
  return std::nullopt;
}

QString bytesWithin(QString text) {
  if (!text.contains(u" bytes")) return text;  // most; quicker than the pattern
  static const QRegularExpression kBytes(QStringLiteral("\\b(\\d{4,18}) bytes\\b"));
  qsizetype from = 0;
  for (auto match = kBytes.match(text); match.hasMatch(); match = kBytes.match(text, from)) {
    const QString with = bytes(match.captured(1).toLongLong());
    text.replace(match.capturedStart(), match.capturedLength(), with);
    from = match.capturedStart() + with.size();
  }
  return text;
}

QString bytesExact(std::int64_t n) { return textOf(units::bytesExact(n)); }

QString count(std::int64_t n) { return textOf(units::count(n)); }

QString countShort(double n) { return textOf(units::countShort(n)); }

QString flopRate(double flops, std::int64_t ns) { return textOf(units::flopRate(flops, static_cast<double>(ns))); }

QString number(double x, int significant) { return textOf(units::number(x, significant)); }

QString numberExact(double x) {
  if (std::isnan(x)) return QStringLiteral("nan");
  if (std::isinf(x)) return x > 0 ? QStringLiteral("inf") : QStringLiteral("-inf");
  return QString::number(x, 'g', 17);
}

QString timeDifference(std::int64_t ns) { return textOf(units::timeDifference(static_cast<double>(ns))); }

QString bytesDifference(std::int64_t n) { return textOf(units::bytesDifference(static_cast<double>(n))); }

QString change(double from, double to) { return textOf(units::change(from, to)); }

QString percent(double part, double whole) {
  if (whole == 0 || !std::isfinite(part / whole)) return {};
  const double p = 100 * part / whole;
  return QString::number(p, 'f', p != 0 && std::abs(p) < 9.95 ? 1 : 0) + QStringLiteral(" %");
}

QString shape(const std::vector<std::int64_t>& dims) {
  std::vector<std::string> text;
  for (const auto d : dims) text.push_back(std::to_string(d));
  return shape(text);
}

QString shape(const std::vector<std::string>& dims) {
  if (dims.empty()) return QStringLiteral("scalar");
  QStringList parts;
  for (const std::string& d : dims) parts << visible(d);
  return parts.join(QStringLiteral(" × "));
}

QString visible(const std::string& name) {
  return visible(QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())));
}

QString visible(const QString& name) {
  QString out;
  out.reserve(name.size());
  for (const QChar c : name) {
    const auto code = c.unicode();
    const bool bidi = (code >= 0x200E && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
                      (code >= 0x2066 && code <= 0x2069) || code == 0x061C || code == 0x200B || code == 0xFEFF;
    if (code == '\n' || code == '\r') {
      out += QChar(0x23CE);
    } else if (code == '\t') {
      out += ' ';
    } else if (bidi || c.category() == QChar::Other_Control || code == 0x2028 || code == 0x2029) {
      out += QStringLiteral("⟨U+%1⟩").arg(code, 4, 16, QChar('0')).toUpper();
    } else {
      out += c;
    }
  }
  return out;
}

QString elided(const QString& text, const QFontMetrics& metrics, int width) {
  return elided(
      text, [&metrics](const QString& t) { return static_cast<double>(metrics.horizontalAdvance(t)); }, width);
}

QString elided(const QString& text, const std::function<double(const QString&)>& wide, double width) {
  if (wide(text) <= width) return text;
  const QString dots(QChar(0x2026));
  // The longest beginning that fits in front of `tail`.
  const auto before = [&](const QString& tail) {
    qsizetype low = 0, high = text.size() - tail.size();
    while (low < high) {
      const qsizetype middle = (low + high + 1) / 2;
      if (wide(text.left(middle) + dots + tail) <= width) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    // Dots beside a dot read as one row of them; half of a surrogate pair is no letter.
    while (low > 0 && (separates(text[low - 1]) || text[low - 1].isHighSurrogate())) --low;
    return text.left(low);
  };
  if (wide(dots) > width) return {};
  if (isSentence(text)) return before({}) + dots;
  for (const qsizetype at : wordStarts(text)) {
    const QString tail = text.mid(at);
    if (wide(dots + tail) > kMostTail * width) continue;
    return before(tail) + dots + tail;
  }
  // One long word, or words of which not even the last has room.
  return before({}) + dots;
}

QString elidedPath(const QString& text, const QFontMetrics& metrics, int width) {
  if (metrics.horizontalAdvance(text) <= width) return text;
  const auto slash = text.lastIndexOf('/');
  if (slash <= 0 || text.contains(' ')) return elided(text, metrics, width);
  const QString name = text.mid(slash);
  const int left = width - metrics.horizontalAdvance(name);
  const QString path = metrics.elidedText(text.left(slash), Qt::ElideRight, left);
  // Room for the dots and a letter at least.
  return path.size() < 2 || metrics.horizontalAdvance(path) > left ? elided(text, metrics, width) : path + name;
}

}  // namespace stepscope::format
