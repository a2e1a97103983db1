// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/report_pdf.h"

#include <QAbstractTextDocumentLayout>
#include <QFileInfo>
#include <QHash>
#include <QMap>
#include <QPageLayout>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QRegularExpression>
#include <QSvgRenderer>
#include <QTextDocument>
#include <QTextObjectInterface>
#include <memory>

#include "app/workbench/report_pages.h"

namespace stepscope {
namespace {

constexpr double kWide = 920, kNarrow = 290;  // of a chart on the page and of one of three beside each other, in 1/96 inch
constexpr double kNarrowFrom = 400;           // of the view box

// Plain sheet for the page: what QTextDocument understands.
const char* const kSheet =
    "body { font-size: 7.5pt; } h1 { font-size: 15pt; } h2 { font-size: 11pt; margin-top: 14px; } h3 { font-size: 8pt; "
    "font-weight: 600; margin-top: 8px; } "
    "th, td { padding: 1px 4px; text-align: right; white-space: nowrap; } td.w, li { white-space: normal; } li, h3 { text-align: left; } th { color: %1; "
    "font-weight: 400; } .l { text-align: left; } "
    ".dim, .meta, .sub, .legend, footer { color: %1; } .bad { color: %2; } dt { color: %1; } dd { margin-left: 0; "
    "margin-bottom: 4px; }";

// The custom properties of the light theme, which stands first.
QHash<QString, QString> variablesOf(const QString& sheet) {
  QHash<QString, QString> found;
  static const QRegularExpression kVariable(QStringLiteral("--([\\w-]+):([^;}]+)"));
  for (auto all = kVariable.globalMatch(sheet); all.hasNext();) {
    const auto match = all.next();
    if (!found.contains(match.captured(1))) found.insert(match.captured(1), match.captured(2).trimmed());
  }
  return found;
}

QString withVariables(const QString& text, const QHash<QString, QString>& variables) {
  static const QRegularExpression kUse(QStringLiteral("var\\(--([\\w-]+)\\)"));
  QString out;
  qsizetype from = 0;
  for (auto all = kUse.globalMatch(text); all.hasNext();) {
    const auto match = all.next();
    out += QStringView(text).mid(from, match.capturedStart() - from);
    out += variables.value(match.captured(1), QStringLiteral("#000000"));
    from = match.capturedEnd();
  }
  return out + text.mid(from);
}

// "svg .grid{…}" of the sheet by class; "svg text{…}" by element.
QHash<QString, QString> rulesOf(const QString& sheet) {
  QHash<QString, QString> found;
  static const QRegularExpression kRule(QStringLiteral("svg (\\.?\\w+)\\{([^}]*)\\}"));
  for (auto all = kRule.globalMatch(sheet); all.hasNext();) {
    const auto match = all.next();
    QString rule = match.captured(2);
    // A halo is a stroke behind the letters; drawn after them it would hide them.
    if (rule.contains(QStringLiteral("paint-order")))
      rule.remove(QRegularExpression(QStringLiteral("(paint-order|stroke[\\w-]*):[^;]*;?")));
    found.insert(match.captured(1), rule);
  }
  return found;
}

// HTML's SVG as XML that stands alone: quoted attributes, rules of the sheet as styles of their elements.
QByteArray standAlone(QString svg, const QHash<QString, QString>& rules) {
  static const QRegularExpression kHover(QStringLiteral("<g class=h>.*?</g></g>"),
                                         QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kTitle(QStringLiteral("<title>.*?</title>"),
                                         QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kBare(QStringLiteral("(<[^<>]*?\\s[\\w-]+=)([\\w.-]+)(?=[\\s/>])"));
  static const QRegularExpression kElement(QStringLiteral("<(\\w+)((?:\\s[^<>]*?)?)(/?)>"));
  static const QRegularExpression kClass(QStringLiteral("\\sclass=\"(\\w+)\""));
  svg.remove(kHover);
  svg.remove(kTitle);
  for (QString before; before != svg;) {  // one attribute of each element a round
    before = svg;
    svg.replace(kBare, QStringLiteral("\\1\"\\2\""));
  }
  QString out;
  qsizetype from = 0;
  for (auto all = kElement.globalMatch(svg); all.hasNext();) {
    const auto match = all.next();
    QString attributes = match.captured(2), rule = rules.value(match.captured(1));
    if (const auto named = kClass.match(attributes); named.hasMatch()) {
      rule += ';' + rules.value('.' + named.captured(1));
      attributes.remove(kClass);
    }
    if (match.captured(1) == u"svg") {
      attributes += QStringLiteral(" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\"");
      rule.clear();
    }
    // As attributes: the renderer reads those of every kind, and styles of few. A later rule wins.
    QMap<QString, QString> declared;
    for (const QString& declaration : rule.split(';', Qt::SkipEmptyParts))
      declared[declaration.section(':', 0, 0).trimmed()] = declaration.section(':', 1).trimmed();
    for (const auto& [name, value] : declared.asKeyValueRange()) {
      if (!value.isEmpty() && !attributes.contains(' ' + name + '='))
        attributes += QStringLiteral(" %1=\"%2\"").arg(name, value);
    }
    out += QStringView(svg).mid(from, match.capturedStart() - from);
    out += '<' + match.captured(1) + attributes + match.captured(3) + '>';
    from = match.capturedEnd();
  }
  return (out + svg.mid(from)).toUtf8();
}

}  // namespace

// Draws "chart:N" where the page has an image.
class ChartObject : public QObject, public QTextObjectInterface {
  Q_OBJECT
  Q_INTERFACES(QTextObjectInterface)

 public:
  explicit ChartObject(const std::vector<QByteArray>& charts) {
    for (const QByteArray& chart : charts) renderers_.push_back(std::make_unique<QSvgRenderer>(chart));
  }

  QSizeF intrinsicSize(QTextDocument* document, int, const QTextFormat& format) override {
    QSvgRenderer* chart = of(format);
    if (!chart || chart->viewBoxF().width() <= 0) return {};
    const QPaintDevice* device = document->documentLayout()->paintDevice();
    const QRectF box = chart->viewBoxF();
    const double width = (box.width() < kNarrowFrom ? kNarrow : kWide) * (device ? device->logicalDpiY() / 96.0 : 1);
    return {width, box.height() / box.width() * width};
  }
  void drawObject(QPainter* painter, const QRectF& rect, QTextDocument*, int, const QTextFormat& format) override {
    if (QSvgRenderer* chart = of(format)) chart->render(painter, rect);
  }

 private:
  QSvgRenderer* of(const QTextFormat& format) const {
    bool number = false;
    const auto index = static_cast<std::size_t>(format.toImageFormat().name().section(':', 1).toUInt(&number));
    return number && index < renderers_.size() ? renderers_[index].get() : nullptr;
  }

  std::vector<std::unique_ptr<QSvgRenderer>> renderers_;
};

ReportPage printable(const QString& html) {
  static const QRegularExpression kStyle(QStringLiteral("<style>(.*?)</style>"),
                                         QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kNav(QStringLiteral("<nav.*?</nav>"), QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kSvg(QStringLiteral("<svg.*?</svg>"), QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kSwatch(QStringLiteral("<i class=k style=\"background:([^\";]+)[^\"]*\"></i>"));
  static const QRegularExpression kOne(QStringLiteral("<div>(<h3>[^<]*</h3>)(<img[^>]*>)\\s*</div>"));
  static const QRegularExpression kThree(QStringLiteral("<div class=three>((?:<td.*?</td>)*)</div>"),
                                         QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kLoose(QStringLiteral("(?<!<p>)(<img[^>]*>)"));
  static const QRegularExpression kTile(
      QStringLiteral("<div class=tile[^>]*><dt>(.*?)</dt><dd>(.*?)</dd><p>(.*?)</p></div>"),
      QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kTiles(QStringLiteral("<dl class=tiles>(.*?)</dl>"),
                                         QRegularExpression::DotMatchesEverythingOption);
  const QString sheet = kStyle.match(html).captured(1);
  const QHash<QString, QString> variables = variablesOf(sheet);
  const QHash<QString, QString> rules = rulesOf(withVariables(sheet, variables));
  QString body = html;
  body.remove(kStyle);
  body.remove(kNav);
  body = withVariables(body, variables);
  ReportPage page;
  qsizetype from = 0;
  for (auto all = kSvg.globalMatch(body); all.hasNext();) {
    const auto match = all.next();
    page.html += QStringView(body).mid(from, match.capturedStart() - from);
    page.html += QStringLiteral("<img src=\"chart:%1\">").arg(page.charts.size());
    page.charts.push_back(standAlone(match.captured(), rules));
    from = match.capturedEnd();
  }
  page.html += QStringView(body).mid(from);
  page.html.replace(QStringLiteral("</span><span>"), QStringLiteral("</span> · <span>"));
  page.html.replace(kSwatch, QStringLiteral("<span style=\"color:\\1\">■</span> "));
  page.html.replace(kTile, QStringLiteral("<td class=l><span class=dim>\\1</span><br><b>\\2</b><br><span class=dim>\\3</span></td>"));
  page.html.replace(kTiles, QStringLiteral("<table width=\"100%\"><tr>\\1</tr></table><p></p>"));
  page.html.replace(kOne, QStringLiteral("<td class=l>\\1<p>\\2</p></td>"));
  // In a paragraph of its own: beside the text before it a chart would make that line as high as itself.
  page.html.replace(kLoose, QStringLiteral("<p>\\1</p>"));
  page.html.replace(kThree, QStringLiteral("<table width=\"100%\"><tr>\\1</tr></table>"));
  const QString own = QString::fromLatin1(kSheet).arg(variables.value(QStringLiteral("muted"), QStringLiteral("#000000")),
                                                      variables.value(QStringLiteral("error"), QStringLiteral("#000000")));
  page.html.prepend(QStringLiteral("<style>%1</style>").arg(own));
  return page;
}

QString printReport(const QString& html, const QString& path) {
  const ReportPage page = printable(html);
  ChartObject charts(page.charts);
  QTextDocument document;
  document.documentLayout()->registerHandler(QTextFormat::ImageObject, &charts);
  document.setHtml(page.html);
  QPdfWriter writer(path);
  writer.setPageSize(QPageSize(QPageSize::A4));
  writer.setPageOrientation(QPageLayout::Landscape);  // tables have a dozen columns
  writer.setPageMargins({18, 15, 18, 10}, QPageLayout::Millimeter);
  writer.setTitle(QStringLiteral("Stepscope report"));
  layOutPages(document, writer);
  if (!drawPages(document, writer)) return QStringLiteral("it cannot be written; choose another folder");
  return QFileInfo(path).size() == 0 ? QStringLiteral("nothing was written") : QString();
}

}  // namespace stepscope

#include "report_pdf.moc"
