// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/print/report_pdf.h"

#include <QFileInfo>
#include <QPageLayout>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>

#include "app/workbench/print/printed_blocks.h"
#include "storage/report/format.h"

namespace stepscope::print {
namespace {

constexpr int kResolution = 1200;  // dots per inch: letters are set in whole ones
constexpr double kFootSize = 9.3;

// A line, what this is about, and which of the pages it is.
void drawFoot(QPainter& painter, const Paper& paper, const QString& about, const QString& number) {
  const QRectF line(0, paper.height + paper.px(kFoot) / 3, paper.width, paper.px(kFoot) * 2 / 3);
  const QFont font = paper.font(kFootSize);
  painter.setFont(font);
  painter.setPen(QPen(inkOf("border"), paper.px(1)));
  painter.drawLine(line.topLeft(), line.topRight());
  painter.setPen(inkOf("muted"));
  painter.drawText(line, Qt::AlignRight | Qt::AlignBottom, number);
  const QFontMetricsF metrics(font);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignBottom,
                   metrics.elidedText(about, Qt::ElideMiddle, line.width() - 2 * metrics.horizontalAdvance(number)));
}

}  // namespace

QString printReport(const storage::doc::Document& document, const QString& path) {
  const QString about = QString::fromStdString(storage::visibleText(document.title + " · " + document.about));
  QPdfWriter writer(path);
  writer.setResolution(kResolution);
  writer.setPageSize(QPageSize(QPageSize::A4));
  writer.setPageOrientation(QPageLayout::Landscape);
  writer.setPageMargins({18, 15, 18, 10}, QPageLayout::Millimeter);
  writer.setTitle(about);
  const Paper paper = Paper::of(writer);
  const std::vector<Piece> pieces = documentPieces(paper, document);
  const std::vector<PlacedPage> pages = pagesOf(pieces, paper.height);
  QPainter painter;
  if (!painter.begin(&writer)) return QStringLiteral("it cannot be written; choose another folder");
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (i > 0 && !writer.newPage()) return QStringLiteral("it cannot be written any further; is there room?");
    for (const PlacedPiece& placed : pages[i]) {
      painter.save();
      placed.piece->draw(painter, placed.top);
      painter.restore();
    }
    drawFoot(painter, paper, about, QStringLiteral("%1 of %2").arg(i + 1).arg(pages.size()));
  }
  painter.end();
  return QFileInfo(path).size() == 0 ? QStringLiteral("nothing was written") : QString();
}

}  // namespace stepscope::print
