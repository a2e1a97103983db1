// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/report_markup.h"

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>
#include <functional>

namespace stepscope {
namespace {

constexpr int kShareLetters = 7;  // "100.0 %"
constexpr int kFewColumns = 4;
constexpr int kIndent = 18;     // of a part below its whole, pixels
constexpr int kMostRows = 100;  // of what the HTML report keeps folded: paper has no search

const char* const kSheet =
    "body { font-size: 7.5pt; color: $text; } h1 { font-size: 17pt; margin-bottom: 2px; } "
    "h2 { font-size: 12pt; margin-top: 20px; margin-bottom: 2px; } h3 { margin-top: 12px; margin-bottom: 4px; } "
    "p { margin-top: 4px; margin-bottom: 4px; } .sub, .legend { margin-bottom: 8px; } "
    "table { border-collapse: collapse; margin-top: 6px; margin-bottom: 6px; } th, td { padding: 2px 4px; text-align: "
    "right; white-space: nowrap; } "
    "th { color: $muted; font-weight: 400; border-bottom: 1px solid $border; vertical-align: bottom; } "
    "td { border-bottom: 1px solid $grid; vertical-align: top; } "
    "td.w { white-space: normal; } .l { text-align: left; } .free { border: 0; padding: 0; } "
    ".tile { padding: 6px 10px; text-align: left; border: 1px solid $border; } .value { font-size: 12pt; font-weight: 600; "
    "} .small { font-size: 8.5pt; } small { font-weight: 400; } "
    ".fact { text-align: left; white-space: normal; border: 0; padding: 1px 6px; } "
    ".dim, .meta, .sub, .legend, .empty, small { color: $muted; } .bad, .error, .failed { color: $error; } .warning, "
    ".interrupted, .cancelled { color: $warn; } .finished { color: $ok; }";

using Made = std::function<QString(const QRegularExpressionMatch&)>;

QString replaced(const QString& text, const char* pattern, const Made& make) {
  const QRegularExpression expression(QString::fromLatin1(pattern), QRegularExpression::DotMatchesEverythingOption);
  QString out;
  qsizetype from = 0;
  for (auto all = expression.globalMatch(text); all.hasNext();) {
    const auto match = all.next();
    out += QStringView(text).mid(from, match.capturedStart() - from);
    out += make(match);
    from = match.capturedEnd();
  }
  return out + text.mid(from);
}

QStringList capturedIn(const QString& text, const char* pattern) {
  QStringList found;
  replaced(text, pattern, [&found](const QRegularExpressionMatch& m) {
    found.push_back(m.captured(1));
    return QString();
  });
  return found;
}

QString stack(const QRegularExpressionMatch& match) {
  QStringList parts;
  replaced(match.captured(1), "flex:([\\d.]+);background:([^\";]+)", [&parts](const QRegularExpressionMatch& m) {
    parts.push_back(m.captured(1) + ',' + m.captured(2));
    return QString();
  });
  return QStringLiteral("<p><img src=\"stack:%1\"></p>").arg(parts.join(';'));
}

// Figure spaces before the number, so that the bars of a column begin below each other.
QString share(const QRegularExpressionMatch& match) {
  const auto missing = std::max<qsizetype>(0, kShareLetters - match.captured(3).size());
  return QStringLiteral("<td><img src=\"bar:%1,%2\"><span style=\"white-space:pre-wrap\">%3%4</span></td>")
      .arg(match.captured(1), match.captured(2), QString(missing + 1, QChar(0x2007)), match.captured(3));
}

QString tiles(const QRegularExpressionMatch& match) {
  return QStringLiteral("<p></p><table width=\"100%\" cellspacing=\"0\"><tr>%1</tr></table>")
      .arg(replaced(match.captured(1), "<div class=tile[^>]*><dt>(.*?)</dt><dd>(.*?)</dd><p>(.*?)</p></div>",
                    [](const QRegularExpressionMatch& m) {
                      return QStringLiteral(
                                 "<td class=tile width=\"20%\"><span class=dim>%1</span><br><span "
                                 "class=value>%2</span><br><span class=dim>%3</span></td>")
                          .arg(m.captured(1), m.captured(2), m.captured(3));
                    }));
}

// Two lists of facts beside each other: a row for each pair.
QString factLists(const QRegularExpressionMatch& match) {
  std::vector<QStringList> names, values;
  QString heads;
  replaced(match.captured(1), "<div><h3>(.*?)</h3><dl class=kv>(.*?)</dl></div>", [&](const QRegularExpressionMatch& m) {
    heads += QStringLiteral("<td class=fact></td><td class=fact><b>%1</b></td>").arg(m.captured(1));
    names.push_back(capturedIn(m.captured(2), "<dt>(.*?)</dt>"));
    values.push_back(capturedIn(m.captured(2), "<dd>(.*?)</dd>"));
    return QString();
  });
  QString rows = QStringLiteral("<tr>%1</tr>").arg(heads);
  qsizetype count = 0;
  for (const QStringList& list : names) count = std::max(count, list.size());
  for (qsizetype i = 0; i < count; ++i) {
    rows += QStringLiteral("<tr>");
    for (std::size_t k = 0; k < names.size(); ++k)
      rows +=
          QStringLiteral("<td class=fact width=\"9%\"><span class=dim>%1</span></td><td class=fact width=\"41%\">%2</td>")
              .arg(names[k].value(i), values[k].value(i));
    rows += QStringLiteral("</tr>");
  }
  return QStringLiteral("<p></p><table width=\"100%\" cellspacing=\"0\">%1</table>").arg(rows);
}

QString chartsBeside(const QRegularExpressionMatch& match) {
  QString cells;
  int count = 0;
  replaced(match.captured(1), "<div><h3>([^<]*)</h3>(<img[^>]*>)\\s*</div>", [&](const QRegularExpressionMatch& m) {
    cells += QStringLiteral("<td class=free align=left width=\"33%\"><h3 align=left>%1</h3><p align=left>%2</p></td>")
                 .arg(m.captured(1), m.captured(2));
    ++count;
    return QString();
  });
  for (; count < 3; ++count) cells += QStringLiteral("<td class=free width=\"33%\"></td>");
  return QStringLiteral("<table width=\"100%\" cellspacing=\"0\"><tr>%1</tr></table>").arg(cells);
}

QString alerts(const QRegularExpressionMatch& match) {
  QString rows =
      replaced(match.captured(), "<div class=alert>(<span.*?</span>)<p>(.*?)</p><span class=at>(.*?)</span></div>",
               [](const QRegularExpressionMatch& m) {
                 return QStringLiteral(
                            "<tr><td class=l width=\"8%\">%1</td><td class=\"l w\">%2</td><td class=\"l dim\" "
                            "width=\"18%\">%3</td></tr>")
                     .arg(m.captured(1), m.captured(2), m.captured(3));
               });
  return QStringLiteral("<table width=\"100%\" cellspacing=\"0\">%1</table>").arg(rows);
}

QString nearMisses(const QRegularExpressionMatch& match) {
  return QStringLiteral("<br><span class=dim>%1:<br>– %2</span>")
      .arg(match.captured(1), capturedIn(match.captured(2), "<li>(.*?)</li>").join(QStringLiteral("<br>– ")));
}

}  // namespace

PrintedBar printedBar(const QString& imageName) {
  PrintedBar bar;
  bar.wide = imageName.startsWith(QStringLiteral("stack:"));
  if (!bar.wide && !imageName.startsWith(QStringLiteral("bar:"))) return bar;
  for (const QString& part : imageName.section(':', 1).split(';', Qt::SkipEmptyParts))
    bar.parts.emplace_back(std::clamp(part.section(',', 0, 0).toDouble(), 0.0, 1.0), part.section(',', 1));
  return bar;
}

QString printedMarkup(QString body) {
  const auto change = [&body](const char* pattern, const Made& make) { body = replaced(body, pattern, make); };
  change("<div class=stack>(.*?)</div>", stack);
  change("<td class=bar><i style=\"--w:([\\d.]+);background:([^\";]+)\"></i><span>(.*?)</span></td>", share);
  change("<dl class=tiles>(.*?)</dl>", tiles);
  change("<div class=two>((?:<div>.*?</dl></div>)+)</div>", factLists);
  change("<div class=three>((?:<div><h3>[^<]*</h3><img[^>]*>\\s*</div>)+)</div>", chartsBeside);
  change("(?:<div class=alert>.*?</div>\\s*)+", alerts);
  change("<details><summary>([^<]*)</summary><ul>(.*?)</ul></details>", nearMisses);
  change("<h2>[^<]*</h2>\\s*<details><summary>([^<]*)</summary>(.*?)</details>", [](const QRegularExpressionMatch& m) {
    if (m.captured(2).count(QStringLiteral("<tr")) <= kMostRows) return m.captured();
    return QStringLiteral("<p></p><p class=sub>%1: row by row in the reports as HTML, CSV and JSON.</p>").arg(m.captured(1));
  });
  change("<details[^>]*><summary>(.*?)</summary>",
         [](const QRegularExpressionMatch& m) { return QStringLiteral("<h3>%1</h3>").arg(m.captured(1)); });
  body.remove(QStringLiteral("</details>"));
  // A cell with a style of its own has nothing of the sheet.
  change("<td([^>]*?) style=\"padding-left:(\\d+)px\">", [](const QRegularExpressionMatch& m) {
    return QStringLiteral("<td%1>%2").arg(m.captured(1), QString(m.captured(2).toInt() / kIndent * 4, QChar::Nbsp));
  });
  change("<div class=legend>(.*?)</div>", [](const QRegularExpressionMatch& m) {
    return QStringLiteral("<p class=legend>%1</p>")
        .arg(m.captured(1).replace(QStringLiteral("</span><span"), QStringLiteral("</span> &nbsp; &nbsp;<span")));
  });
  // Names break less well than the words of a kernel.
  body.replace(QStringLiteral("<td class=\"l dim mono cut\""), QStringLiteral("<td class=\"l dim w\""));
  body.replace(QStringLiteral("</span> &nbsp;<span>"), QStringLiteral("</span> · <span>"));
  body.replace(QStringLiteral("</span><span>"), QStringLiteral("</span> · <span>"));
  change("<i class=k style=\"background:([^\";]+)[^\"]*\"></i>", [](const QRegularExpressionMatch& m) {
    return QStringLiteral("<span style=\"color:%1\">■</span> ").arg(m.captured(1));
  });
  // Few columns beside each other, so that the eye finds the number of a name.
  change("<table>(<thead>.*?</thead>)", [](const QRegularExpressionMatch& m) {
    return QStringLiteral("<table width=\"%1%\" cellspacing=\"0\">%2")
        .arg(m.captured(1).count(QStringLiteral("<th")) - 1 <= kFewColumns ? 45 : 100)
        .arg(m.captured(1));
  });
  change("<h3([^>]*)>(.*?)</h3>", [](const QRegularExpressionMatch& m) {
    return QStringLiteral("<h3%1><span class=small>%2</span></h3>").arg(m.captured(1), m.captured(2));
  });
  // A picture beside text would make that line as high as itself.
  change("(?<!<p>)(<img src=\"chart[^>]*>)",
         [](const QRegularExpressionMatch& m) { return QStringLiteral("<p>%1</p>").arg(m.captured(1)); });
  return body;
}

QString printedSheet(const QHash<QString, QString>& colours) {
  QString sheet = QString::fromLatin1(kSheet);
  for (const char* name : {"text", "muted", "border", "grid", "error", "warn", "ok"})
    sheet.replace('$' + QLatin1String(name), colours.value(QLatin1String(name), QStringLiteral("#000000")));
  return sheet;
}

}  // namespace stepscope
