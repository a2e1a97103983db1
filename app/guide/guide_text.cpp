// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/guide/guide_text.h"

#include <QEvent>
#include <QImage>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextFragment>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

bool isDark() { return Tokens::current().theme == Theme::kDark; }

bool holdsPicture(const QTextBlock& block) {
  for (auto it = block.begin(); !it.atEnd(); ++it)
    if (it.fragment().charFormat().isImageFormat()) return true;
  return false;
}

// Every block of the document with a cursor over it.
template <typename F>
void eachBlock(QTextDocument& document, F&& f) {
  for (QTextBlock block = document.begin(); block.isValid(); block = block.next()) {
    QTextCursor cursor(block);
    cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
    f(block, cursor);
  }
}

}  // namespace

GuideText::GuideText(QWidget* parent) : QTextBrowser(parent) {
  setObjectName(QStringLiteral("guide_text"));
  setAccessibleName(QStringLiteral("Page of the guide"));
  setOpenLinks(false);
  setFrameShape(QFrame::NoFrame);
  setStyleSheet(QStringLiteral("QTextBrowser { border: 0; border-radius: 0; padding: 0; }"));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  // The width of the text, and with it that of a picture, does not change with the length of the page.
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  document()->setDocumentMargin(Metrics::current().unit);
  connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
    const QString href = url.toString();
    const GuideLink link = href.startsWith(u"page:") ? GuideLink{GuideLink::kPage, href.mid(5)} : guideLink(pageId_, href);
    if (link.kind != GuideLink::kNothing) emit followed(link);
  });
}

void GuideText::showPage(const GuidePage& page) {
  pageId_ = page.id;
  markdown_ = page.markdown;
  html_.clear();
  write();
  verticalScrollBar()->setValue(0);
}

void GuideText::showHits(const QString& question, const std::vector<GuideHit>& hits) {
  pageId_.clear();
  markdown_.clear();
  html_ = QStringLiteral("<h1>%1</h1>")
              .arg(hits.empty() ? QStringLiteral("No page") : QStringLiteral("%1 found").arg(hits.size()));
  if (hits.empty())
    html_ +=
        QStringLiteral("<p>%1</p>")
            .arg(QStringLiteral("No page of the guide has every word of “%1”. Try fewer words, or only their beginnings.")
                     .arg(question.toHtmlEscaped()));
  for (const GuideHit& hit : hits)
    html_ += QStringLiteral("<p><a href='page:%1'>%2</a><br>%3</p>")
                 .arg(hit.page->id, hit.page->title.toHtmlEscaped(), hit.line.toHtmlEscaped());
  write();
  verticalScrollBar()->setValue(0);
}

void GuideText::write() {
  if (html_.isEmpty())
    document()->setMarkdown(markdown_, QTextDocument::MarkdownDialectCommonMark);
  else
    document()->setHtml(html_);
  dress();
  fitPictures();
}

// The sizes of headings that Markdown comes with are those of a printed page.
void GuideText::dress() {
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  const double points = font().pointSizeF();
  eachBlock(*document(), [&](const QTextBlock& block, QTextCursor& cursor) {
    QTextBlockFormat format = block.blockFormat();
    const int level = format.headingLevel();
    // A line is as high as a picture in it: in proportion, a quarter of that would be empty below.
    if (holdsPicture(block))
      format.setLineHeight(0, QTextBlockFormat::SingleHeight);
    else
      format.setLineHeight(125, QTextBlockFormat::ProportionalHeight);
    format.setTopMargin(level > 1 ? 1.1 * m.unit : 0);
    format.setBottomMargin(block.textList() && !level ? 0.3 * m.unit : 0.6 * m.unit);
    cursor.setBlockFormat(format);
    if (level == 0) return;
    QTextCharFormat heading;
    heading.setProperty(QTextFormat::FontSizeAdjustment, 0);
    heading.setFontPointSize(points * (level == 1 ? 1.4 : 1.1));
    heading.setFontWeight(QFont::DemiBold);
    cursor.mergeCharFormat(heading);
  });
  for (QTextBlock block = document()->begin(); block.isValid(); block = block.next()) {
    for (auto it = block.begin(); !it.atEnd(); ++it) {
      const QTextFragment part = it.fragment();
      const QTextCharFormat was = part.charFormat();
      QTextCharFormat more;
      if (was.isAnchor()) more.setForeground(t.accent);
      if (was.fontFixedPitch()) {
        more.setFontFamilies({monoFont().family()});
        more.setBackground(t.raised);
      }
      if (more.propertyCount() == 0) continue;
      QTextCursor cursor(document());
      cursor.setPosition(part.position());
      cursor.setPosition(part.position() + part.length(), QTextCursor::KeepAnchor);
      cursor.mergeCharFormat(more);
    }
  }
  document()->clearUndoRedoStacks();
  moveCursor(QTextCursor::Start);
}

QVariant GuideText::loadResource(int type, const QUrl& name) {
  if (type != QTextDocument::ImageResource) return {};
  return QImage(guidePicture(pageId_, name.toString(), isDark()));
}

// As wide as they were taken, or as the text.
void GuideText::fitPictures() {
  const double room = viewport()->width() - 2 * document()->documentMargin();
  for (QTextBlock block = document()->begin(); block.isValid(); block = block.next()) {
    for (auto it = block.begin(); !it.atEnd(); ++it) {
      const QTextFragment part = it.fragment();
      QTextImageFormat picture = part.charFormat().toImageFormat();
      if (!picture.isValid()) continue;
      const QImage image(guidePicture(pageId_, picture.name(), isDark()));
      if (image.isNull()) continue;
      const double width = std::min<double>(image.width(), std::max(40.0, room));
      picture.setWidth(width);
      picture.setHeight(width * image.height() / image.width());
      QTextCursor cursor(document());
      cursor.setPosition(part.position());
      cursor.setPosition(part.position() + part.length(), QTextCursor::KeepAnchor);
      cursor.setCharFormat(picture);
      it = block.begin();
      while (!it.atEnd() && it.fragment().position() < part.position()) ++it;
    }
  }
}

void GuideText::resizeEvent(QResizeEvent* event) {
  QTextBrowser::resizeEvent(event);
  fitPictures();
}

void GuideText::changeEvent(QEvent* event) {
  QTextBrowser::changeEvent(event);
  const bool other = event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange;
  if (!other || (markdown_.isEmpty() && html_.isEmpty())) return;
  const int place = verticalScrollBar()->value();
  write();
  verticalScrollBar()->setValue(place);
}

}  // namespace stepscope
