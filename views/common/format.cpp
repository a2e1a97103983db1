// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

constexpr QChar kMinus(0x2212);
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// Three significant digits without an exponent.
QString three(double x) {
  const double a = std::abs(x);
  return QString::number(x, 'f', a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
}

QString grouped(QString digits) {
  for (auto i = digits.size() - 3; i > 0; i -= 3) digits.insert(i, ',');
  return digits;
}

}  // namespace

QString time(std::int64_t ns) {
  if (ns < 0) return QStringLiteral("–");
  const double x = static_cast<double>(ns);
  if (ns < 1000) return QStringLiteral("%1 ns").arg(ns);
  if (x < 999.5e3) return three(x / 1e3) + QStringLiteral(" µs");
  if (x < 999.5e6) return three(x / 1e6) + QStringLiteral(" ms");
  if (x < 60e9) return QString::number(x / 1e9, 'f', 2) + QStringLiteral(" s");
  const auto seconds = ns / 1'000'000'000;
  return QStringLiteral("%1:%2.%3").arg(seconds / 60).arg(seconds % 60, 2, 10, QChar('0')).arg(ns / 100'000'000 % 10);
}

QString timeExact(std::int64_t ns) { return count(ns) + QStringLiteral(" ns"); }

QString bytes(std::int64_t n) {
  if (n < 0) return QStringLiteral("–");
  const double x = static_cast<double>(n);
  if (n < 1024) return QStringLiteral("%1 B").arg(n);
  const auto unit = [](double v) {
    return v >= 99.95 ? QString::number(v, 'f', 0) : QString::number(v, 'f', v >= 9.995 ? 1 : 2);
  };
  const auto trimmed = [&unit](double v) {
    return std::abs(v - std::round(v)) < 1e-9 && v >= 10 ? QString::number(std::llround(v)) : unit(v);
  };
  if (x < 1023.5 * 1024) return trimmed(x / 1024) + QStringLiteral(" KiB");
  if (x < 1023.5 * 1024 * 1024) return trimmed(x / (1024.0 * 1024)) + QStringLiteral(" MiB");
  return trimmed(x / (1024.0 * 1024 * 1024)) + QStringLiteral(" GiB");
}

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
  static const QRegularExpression kBytes(QStringLiteral("\\b(\\d{4,18}) bytes\\b"));
  qsizetype from = 0;
  for (auto match = kBytes.match(text); match.hasMatch(); match = kBytes.match(text, from)) {
    const QString with = bytes(match.captured(1).toLongLong());
    text.replace(match.capturedStart(), match.capturedLength(), with);
    from = match.capturedStart() + with.size();
  }
  return text;
}

QString bytesExact(std::int64_t n) { return n == 1 ? QStringLiteral("1 byte") : count(n) + QStringLiteral(" bytes"); }

QString count(std::int64_t n) {
  const QString digits = grouped(QString::number(n < 0 ? 0 - static_cast<quint64>(n) : static_cast<quint64>(n)));
  return n < 0 ? kMinus + digits : digits;
}

QString countShort(double n) {
  const double a = std::abs(n);
  if (a < 1000) return QString::number(n, 'f', a < 10 && a != std::floor(a) ? 1 : 0);
  if (a < 999.5e3) return three(n / 1e3) + QStringLiteral(" k");
  if (a < 999.5e6) return three(n / 1e6) + QStringLiteral(" M");
  if (a < 999.5e9) return three(n / 1e9) + QStringLiteral(" G");
  return three(n / 1e12) + QStringLiteral(" T");
}

QString flopRate(double flops, std::int64_t ns) {
  if (flops <= 0 || ns <= 0) return {};
  return countShort(flops / (static_cast<double>(ns) * 1e-9)) + QStringLiteral("FLOP/s");
}

QString number(double x, int significant) {
  if (std::isnan(x)) return QStringLiteral("NaN");
  if (std::isinf(x)) return x > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
  if (x == 0) return std::signbit(x) ? QStringLiteral("−0") : QStringLiteral("0");
  const double a = std::abs(x);
  QString text;
  if (a >= 1e-3 && a < std::pow(10.0, std::max(significant, 6))) {
    const int before = static_cast<int>(std::floor(std::log10(a))) + 1;
    text = QString::number(a, 'f', std::clamp(significant - before, 0, 17));
    if (text.contains('.')) {
      if (a == std::floor(a)) text = text.left(text.indexOf('.'));
    }
  } else {
    text = QString::number(a, 'e', significant - 1);
    const auto e = text.indexOf('e');
    QString exponent = text.mid(e + 1);
    const bool negative = exponent.startsWith('-');
    exponent = QString::number(std::abs(exponent.toInt()));
    text = text.left(e) + 'e' + (negative ? QString(kMinus) : QString()) + exponent;
  }
  return x < 0 ? kMinus + text : text;
}

QString numberExact(double x) {
  if (std::isnan(x)) return QStringLiteral("nan");
  if (std::isinf(x)) return x > 0 ? QStringLiteral("inf") : QStringLiteral("-inf");
  return QString::number(x, 'g', 17);
}

QString timeDifference(std::int64_t ns) {
  return ns == 0 ? QStringLiteral("0") : (ns > 0 ? QChar('+') : kMinus) + time(std::abs(std::max(ns, -kLargest)));
}

QString bytesDifference(std::int64_t n) {
  return n == 0 ? QStringLiteral("0") : (n > 0 ? QChar('+') : kMinus) + bytes(std::abs(std::max(n, -kLargest)));
}

QString change(double from, double to) {
  const double p = 100 * (to - from) / from;
  if (from == 0 || !std::isfinite(p)) return {};
  const QString digits = QString::number(std::abs(p), 'f', std::abs(p) < 9.95 ? 1 : 0);
  const bool none = digits == QStringLiteral("0.0");
  return (none ? QString() : QString(p > 0 ? QChar('+') : kMinus)) + (none ? QStringLiteral("0") : digits) +
         QStringLiteral(" %");
}

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
