// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/details.h"

#include <QEvent>
#include <QHash>
#include <QRegularExpression>
#include <QScrollBar>
#include <QUrl>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
const QString kLabelWidth = QStringLiteral("\u0001labels\u0001"), kValue = QStringLiteral("\u0001value\u0001"),
              kBeside = QStringLiteral("\u0001beside\u0001");
constexpr double kValueUnits = 13;  // beside its label a value that has less is broken within its words

QString harmless(const QString& plain) {
  static const QRegularExpression kUnit(
      QStringLiteral("(?<=\\d) (?=(?:[KMGTP]iB|B|ns|µs|ms|s|%|[kMGTP]?FLOP/s|[KMGT]i?B/s|bytes)(?![\\w/]))|(?<=\\d) (?=× "
                     "\\d)|(?<=\\d ×) (?=\\d)"));
  QString text = plain.toHtmlEscaped();
  return text.replace(kUnit, QString(QChar::Nbsp));
}

// Every colour of a page is a token's.
QString retinted(const QString& html, const Tokens& from, const Tokens& to) {
  QHash<QString, QString> names;
  const auto add = [&names](const QColor& old, const QColor& fresh) {
    if (!names.contains(old.name())) names.insert(old.name(), fresh.name());
  };
  for (QColor Tokens::*colour :
       {&Tokens::text, &Tokens::muted, &Tokens::faint, &Tokens::accent, &Tokens::ok, &Tokens::warn, &Tokens::error,
        &Tokens::number, &Tokens::negative, &Tokens::currentRow, &Tokens::select, &Tokens::border, &Tokens::hover,
        &Tokens::raised, &Tokens::panel, &Tokens::window, &Tokens::edge})
    add(from.*colour, to.*colour);
  for (int i = 0; i <= snapshot::BufferClass_MAX; ++i) add(from.bufferClass(i), to.bufferClass(i));
  static const QRegularExpression kColour(QStringLiteral("#[0-9a-f]{6}"));
  QString out;
  qsizetype at = 0;
  for (auto it = kColour.globalMatch(html); it.hasNext();) {
    const auto match = it.next();
    out += html.mid(at, match.capturedStart() - at) + names.value(match.captured(), match.captured());
    at = match.capturedEnd();
  }
  return out + html.mid(at);
}

}  // namespace

Details::Details(QWidget* parent) : QTextBrowser(parent) {
  setAccessibleName(QStringLiteral("Details"));
  setOpenLinks(false);
  setOpenExternalLinks(false);
  setFrameShape(QFrame::NoFrame);
  setStyleSheet(QStringLiteral("QTextBrowser { border: 0; border-radius: 0; padding: 0; }"));
  document()->setDocumentMargin(Metrics::current().padding);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
    const QString target = url.toString();
    const QString kind = target.section(':', 0, 0), rest = target.section(':', 1);
    if (kind == u"node") emit selected(Selection::ofNode(rest.toInt()));
    if (kind == u"value") emit selected(Selection::ofValue(rest.toInt()));
    if (kind == u"instruction") emit selected(Selection::ofInstruction(rest.toInt()));
    if (kind == u"buffer") emit selected(Selection::ofBuffer(rest.toInt()));
    if (kind == u"do") emit commandClicked(rest);
  });
}

void Details::setFitContents(bool fitContents) {
  fit_ = fitContents;
  if (fit_) setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  fit();
}

void Details::fit() {
  if (!fit_) return;
  document()->setTextWidth(viewport()->width());
  setFixedHeight(qRound(document()->size().height()) + 2);
}

int Details::labelWidth() const { return qRound(labels_ + 0.7 * Metrics::current().unit); }

bool Details::narrow() const {
  return viewport()->width() < labelWidth() + kValueUnits * Metrics::current().unit + 2 * document()->documentMargin();
}

void Details::resizeEvent(QResizeEvent* event) {
  QTextBrowser::resizeEvent(event);
  if (narrow() != stacked_ && !html_.isEmpty() && !inTable_) return showPage();
  fit();
}

void Details::begin(double labels) {
  const Tokens& t = Tokens::current();
  theme_ = t.theme;
  inTable_ = false;
  labels_ = labels * Metrics::current().unit;
  html_ = QStringLiteral(
              "<style>a { color: %1; text-decoration: none; } td { padding: 2px 8px 2px 0; } td.l { color: %2; white-space: "
              "nowrap; } td.v { padding-left: 12px; padding-bottom: 4px; } "
              "h3 { font-size: large; font-weight: 600; margin: 0 0 6px 0; } p { margin: 4px 0; }</style>")
              .arg(t.accent.name(), t.muted.name());
}

void Details::closeTable() {
  if (inTable_) html_ += QStringLiteral("</table>");
  inTable_ = false;
}

void Details::heading(const QString& text) {
  closeTable();
  html_ += QStringLiteral("<p style='font-weight:600; margin-top:8px; color:%1'>%2</p>")
               .arg(Tokens::current().text.name(), text.toHtmlEscaped());
}

void Details::title(const QString& text) {
  closeTable();
  html_ += QStringLiteral("<p style='margin:2px 0'>%1</p><p style='margin:0; font-size:3px'>&nbsp;</p>").arg(strong(text));
}

void Details::row(const QString& label, const QString& html) {
  if (!inTable_) html_ += QStringLiteral("<table cellspacing='0' width='100%'>");
  inTable_ = true;
  labels_ = std::max(labels_, QFontMetricsF(font()).horizontalAdvance(label));
  html_ += QStringLiteral("<tr><td class='l'%1>%2").arg(kBeside, label.toHtmlEscaped()) + kValue + html +
           QStringLiteral("</td></tr>");
}

void Details::notice(const QString& html) {
  closeTable();
  html_ += QStringLiteral(
               "<table width='100%' cellspacing='0'><tr><td style='background:%1; padding:6px 9px'>%2</td></tr></table><p "
               "style='margin:0; font-size:4px'>&nbsp;</p>")
               .arg(Tokens::current().currentRow.name(), html);
}

void Details::paragraph(const QString& html) {
  closeTable();
  html_ += QStringLiteral("<p>%1</p>").arg(html);
}

void Details::amounts(const std::vector<Amount>& rows) {
  closeTable();
  html_ += QStringLiteral("<table cellspacing='0'>");
  for (const Amount& row : rows) {
    labels_ = std::max(labels_, QFontMetricsF(font()).horizontalAdvance(row.label));
    html_ += QStringLiteral(
                 "<tr><td class='l' width='%1'>%2</td><td align='right'>%3</td><td align='right'>&nbsp;&nbsp;%4</td></tr>")
                 .arg(kLabelWidth, row.label.toHtmlEscaped(), text(row.number), quiet(row.share));
  }
  html_ += QStringLiteral("</table>");
}

void Details::end() {
  closeTable();
  html_.replace(kLabelWidth, QString::number(labelWidth()));
  showPage();
}

void Details::showPage() {
  const int place = verticalScrollBar()->value();
  stacked_ = narrow();
  QString page = html_;
  page.replace(kBeside, stacked_ ? QString() : QStringLiteral(" width='%1'").arg(labelWidth()));
  setHtml(page.replace(kValue, stacked_ ? QStringLiteral("</td></tr><tr><td class='v'>") : QStringLiteral("</td><td>")));
  verticalScrollBar()->setValue(place);
  fit();
}

void Details::changeEvent(QEvent* event) {
  QTextBrowser::changeEvent(event);
  const Theme now = Tokens::current().theme;
  if ((event->type() != QEvent::PaletteChange && event->type() != QEvent::StyleChange) || now == theme_ || html_.isEmpty())
    return;
  html_ = retinted(html_, Tokens::of(theme_), Tokens::of(now));
  theme_ = now;
  showPage();
}

QString Details::text(const QString& plain) { return harmless(plain); }
QString Details::strong(const QString& plain) {
  return QStringLiteral("<span style='font-weight:600'>%1</span>").arg(harmless(plain));
}
QString Details::quiet(const QString& plain) { return coloured(plain, Tokens::current().muted); }
QString Details::mono(const QString& plain) {
  return QStringLiteral("<span style='font-family:\"%1\"; font-size:%2pt'>%3</span>")
      .arg(monoFont().family())
      .arg(monoFont().pointSizeF())
      .arg(harmless(plain));
}
QString Details::coloured(const QString& plain, const QColor& colour) {
  return QStringLiteral("<span style='color:%1'>%2</span>").arg(colour.name(), harmless(plain));
}
QString Details::explained(const QString& html, const QString& tip) {
  return QStringLiteral("<span title=\"%1\">%2</span>").arg(tip.toHtmlEscaped(), html);
}
QString Details::tag(const QString& plain, const QColor& colour) {
  return QStringLiteral("<span style='color:%1'>[%2]</span> ").arg(colour.name(), harmless(plain));
}

QString Details::link(const Selection& target, const QString& plain) {
  QString url;
  if (target.buffer >= 0) url = QStringLiteral("buffer:%1").arg(target.buffer);
  if (target.instruction >= 0) url = QStringLiteral("instruction:%1").arg(target.instruction);
  if (target.node >= 0) url = QStringLiteral("node:%1").arg(target.node);
  if (target.value >= 0) url = QStringLiteral("value:%1").arg(target.value);
  if (url.isEmpty()) return text(plain);
  return QStringLiteral("<a href='%1'>%2</a>").arg(url, harmless(plain));
}

QString Details::decision(const PlanSnapshot& plan, const snapshot::Buffer& buffer) {
  const QString why = format::visible(buffer.decision());
  if (buffer.shares() < 0) return text(why);
  const auto* other = plan.buffer(buffer.shares());
  const QString name = other ? format::visible(other->name()) : QString::number(buffer.shares());
  const QString shared = link(Selection::ofBuffer(buffer.shares()), name), quoted = '\'' + name + '\'';
  const auto at = why.indexOf(quoted);
  if (at < 0) return text(why) + QStringLiteral("<br>") + shared;
  return text(why.left(at)) + shared + text(why.mid(at + quoted.size()));
}

QString Details::command(const QString& id, const QString& plain) {
  return QStringLiteral("<a href='do:%1'>%2</a>").arg(id.toHtmlEscaped(), plain.toHtmlEscaped());
}

}  // namespace stepscope
