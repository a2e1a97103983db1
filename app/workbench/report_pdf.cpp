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
#include <QTextDocumentFragment>
#include <QTextObjectInterface>
#include <memory>

#include "app/workbench/report_markup.h"
#include "app/workbench/report_pages.h"

namespace stepscope {
namespace {

// On the page, in 1/96 inch: a chart, one of three beside each other, a bar of a table and one of the whole width.
constexpr double kWide = 986, kNarrow = 312, kBar = 48, kBarHeight = 8, kStackHeight = 14;
constexpr double kNarrowFrom = 400;  // of the view box
constexpr double kBarOpacity = 0.4;

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

// Draws the charts and bars where the page has an image.
class DrawnObject : public QObject, public QTextObjectInterface {
  Q_OBJECT
  Q_INTERFACES(QTextObjectInterface)

 public:
  explicit DrawnObject(const std::vector<QByteArray>& charts) {
    for (const QByteArray& chart : charts) renderers_.push_back(std::make_unique<QSvgRenderer>(chart));
  }

  QSizeF intrinsicSize(QTextDocument* document, int, const QTextFormat& format) override {
    const QPaintDevice* device = document->documentLayout()->paintDevice();
    const double unit = device ? device->logicalDpiY() / 96.0 : 1;
    if (const PrintedBar bar = printedBar(nameOf(format)); !bar.parts.empty())
      return QSizeF(bar.wide ? kWide : kBar, bar.wide ? kStackHeight : kBarHeight) * unit;
    QSvgRenderer* chart = of(format);
    if (!chart || chart->viewBoxF().width() <= 0) return {};
    const QRectF box = chart->viewBoxF();
    const double width = (box.width() < kNarrowFrom ? kNarrow : kWide) * unit;
    return {width, box.height() / box.width() * width};
  }
  void drawObject(QPainter* painter, const QRectF& rect, QTextDocument*, int, const QTextFormat& format) override {
    if (QSvgRenderer* chart = of(format)) return chart->render(painter, rect);
    const PrintedBar bar = printedBar(nameOf(format));
    double left = rect.left();
    painter->save();
    painter->setOpacity(bar.wide ? 1 : kBarOpacity);
    for (const auto& [part, colour] : bar.parts) {
      const double width = part * rect.width();
      painter->fillRect(QRectF(left, rect.top(), width, rect.height()), QColor(colour));
      left += width;
    }
    painter->restore();
  }

 private:
  static QString nameOf(const QTextFormat& format) { return format.toImageFormat().name(); }
  QSvgRenderer* of(const QTextFormat& format) const {
    if (!nameOf(format).startsWith(QStringLiteral("chart:"))) return nullptr;
    bool number = false;
    const auto index = static_cast<std::size_t>(nameOf(format).section(':', 1).toUInt(&number));
    return number && index < renderers_.size() ? renderers_[index].get() : nullptr;
  }

  std::vector<std::unique_ptr<QSvgRenderer>> renderers_;
};

ReportPage printable(const QString& html) {
  static const QRegularExpression kStyle(QStringLiteral("<style>(.*?)</style>"),
                                         QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kNav(QStringLiteral("<nav.*?</nav>"), QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kSvg(QStringLiteral("<svg.*?</svg>"), QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kTitle(QStringLiteral("<title>(.*?)</title>"),
                                         QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression kFooter(QStringLiteral("<footer>(.*?)</footer>"),
                                          QRegularExpression::DotMatchesEverythingOption);
  const QString sheet = kStyle.match(html).captured(1);
  const QHash<QString, QString> variables = variablesOf(sheet);
  const QHash<QString, QString> rules = rulesOf(withVariables(sheet, variables));
  ReportPage page;
  const QString run = kFooter.match(html).captured(1).section(QStringLiteral(" · "), 0, 0);
  page.foot = QTextDocumentFragment::fromHtml(kTitle.match(html).captured(1) +
                                              (run.isEmpty() ? QString() : QStringLiteral(" · ") + run))
                  .toPlainText();
  QString body = html;
  for (const QRegularExpression* part : {&kStyle, &kNav, &kTitle, &kFooter}) body.remove(*part);
  body = withVariables(body, variables);
  QString text;
  qsizetype from = 0;
  for (auto all = kSvg.globalMatch(body); all.hasNext();) {
    const auto match = all.next();
    text += QStringView(body).mid(from, match.capturedStart() - from);
    text += QStringLiteral("<img src=\"chart:%1\">").arg(page.charts.size());
    page.charts.push_back(standAlone(match.captured(), rules));
    from = match.capturedEnd();
  }
  text += QStringView(body).mid(from);
  page.html = QStringLiteral("<style>%1</style>").arg(printedSheet(variables)) + printedMarkup(std::move(text));
  return page;
}

QString printReport(const QString& html, const QString& path) {
  const ReportPage page = printable(html);
  DrawnObject charts(page.charts);
  QTextDocument document;
  document.documentLayout()->registerHandler(QTextFormat::ImageObject, &charts);
  document.setHtml(page.html);
  QPdfWriter writer(path);
  writer.setPageSize(QPageSize(QPageSize::A4));
  writer.setPageOrientation(QPageLayout::Landscape);  // tables have a dozen columns
  writer.setPageMargins({18, 15, 18, 10}, QPageLayout::Millimeter);
  writer.setTitle(page.foot);
  layOutPages(document, writer);
  if (!drawPages(document, writer, page.foot)) return QStringLiteral("it cannot be written; choose another folder");
  return QFileInfo(path).size() == 0 ? QStringLiteral("nothing was written") : QString();
}

}  // namespace stepscope

#include "report_pdf.moc"
