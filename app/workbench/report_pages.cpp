// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/report_pages.h"

#include <QAbstractTextDocumentLayout>
#include <QGuiApplication>
#include <QPagedPaintDevice>
#include <QPainter>
#include <QScreen>
#include <QTextBlock>
#include <QTextCursor>
#include <QTextFrame>
#include <QTextTable>
#include <algorithm>
#include <cmath>
#include <vector>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr double kFoot = 0.3;    // inch below the text, for the number of the page
constexpr double kFootSize = 7;  // pt
constexpr int kShortTable = 8;   // rows, with the heads
constexpr int kFirstRows = 4;    // of a longer one that stay with its heading

bool holdsImage(const QTextBlock& block, const char* name) {
  for (auto it = block.begin(); it != block.end(); ++it)
    if (it.fragment().charFormat().toImageFormat().name().startsWith(QLatin1String(name))) return true;
  return false;
}

struct Item {
  QTextBlock block;  // or
  QTextTable* table = nullptr;

  bool empty() const { return !table && block.text().trimmed().isEmpty(); }
  int level() const { return table ? 0 : block.blockFormat().headingLevel(); }  // 0: no heading
  bool chart() const { return !table && holdsImage(block, "chart"); }
  bool bar() const { return !table && holdsImage(block, "stack"); }  // belongs to what follows
  bool text() const { return !table && !empty() && level() == 0 && !chart() && !bar(); }
};

struct Extent {
  double top = 1e30, bottom = 0;
  double height = 0;  // without what the end of a page leaves free
};

std::vector<Item> itemsOf(const QTextDocument& document) {
  std::vector<Item> items;
  QTextFrame* root = document.rootFrame();
  for (auto it = root->begin(); it != root->end(); ++it) {
    Item item{it.currentBlock(), qobject_cast<QTextTable*>(it.currentFrame())};
    if (item.table || item.block.isValid()) items.push_back(item);
  }
  return items;
}

bool holdsChart(const QTextTable& table) {
  for (QTextBlock b = table.firstCursorPosition().block(); b.isValid() && b.position() <= table.lastPosition();
       b = b.next()) {
    if (holdsImage(b, "chart")) return true;
  }
  return false;
}

Extent extentOf(const QTextDocument& document, const QTextBlock& block) {
  const QRectF r = document.documentLayout()->blockBoundingRect(block);
  return {r.top(), r.bottom(), r.height()};
}

// Of its first rows; of all, where they shall not part.
Extent extentOf(const QTextDocument& document, const QTextTable& table) {
  const bool whole = holdsChart(table) || table.rows() <= kShortTable;
  Extent extent;
  for (int row = 0; row < (whole ? table.rows() : kFirstRows); ++row) {
    double highest = 0;
    for (int column = 0; column < table.columns(); ++column) {
      const QTextTableCell cell = table.cellAt(row, column);
      double height = 0;
      for (auto it = cell.begin(); it != cell.end(); ++it) {
        if (!it.currentBlock().isValid()) continue;
        const Extent e = extentOf(document, it.currentBlock());
        extent = {std::min(extent.top, e.top), std::max(extent.bottom, e.bottom), extent.height};
        height += e.height;
      }
      highest = std::max(highest, height);
    }
    extent.height += highest;
  }
  return extent;
}

Extent extentOf(const QTextDocument& document, const Item& item) {
  return item.table ? extentOf(document, *item.table) : extentOf(document, item.block);
}

// All of it: what a change leaves as it was may end without lines (Qt 6.4), and is then not drawn.
void layOut(QTextDocument& document) {
  document.markContentsDirty(0, document.characterCount());
  (void)document.documentLayout()->documentSize();
}

// The last item that shall stand on the page of this one.
std::size_t lastWith(const std::vector<Item>& items, std::size_t first) {
  std::size_t i = first;
  int level = 0;  // of the heading passed last
  for (; i + 1 < items.size() &&
         (items[i].level() > 0 || items[i].empty() || items[i].bar() || (level > 0 && items[i].text()));
       ++i) {
    if (items[i].level() > 0) level = items[i].level();
    // A text under a heading stands for what it heads, unless a smaller heading follows.
    if (items[i].text() && (items[i + 1].text() || (items[i + 1].level() > 0 && items[i + 1].level() <= level))) break;
  }
  if (items[i].chart() && i + 1 < items.size() && items[i + 1].text()) ++i;
  return i;
}

void breakBefore(const Item& item) {
  if (item.table) {
    QTextTableFormat format = item.table->format();
    format.setPageBreakPolicy(QTextFormat::PageBreak_AlwaysBefore);
    item.table->setFormat(format);
    return;
  }
  QTextBlockFormat format = item.block.blockFormat();
  format.setPageBreakPolicy(QTextFormat::PageBreak_AlwaysBefore);
  QTextCursor(item.block).setBlockFormat(format);
}

// Pushes rows that begin on one page and end on another to the next, by what the row before leaves free below itself.
void keepRows(QTextDocument& document, QTextTable& table, double page) {
  if (holdsChart(table)) return;
  // Paddings are pixels of the screen, and scaled to the device.
  const QScreen* screen = QGuiApplication::primaryScreen();
  const double unit =
      document.documentLayout()->paintDevice()->logicalDpiY() / (screen ? screen->logicalDotsPerInchY() : 96);
  for (int row = 1; row < table.rows(); ++row) {
    Extent extent;
    for (int column = 0; column < table.columns(); ++column) {
      const QTextTableCell cell = table.cellAt(row, column);
      for (auto it = cell.begin(); it != cell.end(); ++it) {
        if (!it.currentBlock().isValid()) continue;
        const Extent e = extentOf(document, it.currentBlock());
        extent = {std::min(extent.top, e.top), std::max(extent.bottom, e.bottom), std::max(extent.height, e.height)};
      }
    }
    const double end = (std::floor(extent.top / page) + 1) * page;
    if (extent.bottom - 1 < end || extent.height > page / 2) continue;
    for (int column = 0; column < table.columns(); ++column) {
      QTextTableCell cell = table.cellAt(row - 1, column);
      QTextTableCellFormat format = cell.format().toTableCellFormat();
      format.setBottomPadding(format.bottomPadding() + (end - extent.top) / unit);
      cell.setFormat(format);
    }
    layOut(document);
  }
}

}  // namespace

void layOutPages(QTextDocument& document, QPagedPaintDevice& device) {
  document.documentLayout()->setPaintDevice(&device);
  document.setDocumentMargin(0);  // the device has them
  const double height = device.height() - kFoot * device.logicalDpiY();
  document.setPageSize(QSizeF(device.width(), height));
  layOut(document);
  const std::vector<Item> items = itemsOf(document);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].empty()) continue;
    const std::size_t last = lastWith(items, i);
    Extent all;
    for (std::size_t k = i; k <= last; ++k) {
      const Extent e = extentOf(document, items[k]);
      all = {std::min(all.top, e.top), std::max(all.bottom, e.bottom), all.height + e.height};
    }
    const bool parted = std::floor(all.top / height) < std::floor((all.bottom - 1) / height);
    if (parted && all.height < height) {
      breakBefore(items[i]);
      layOut(document);
    }
    i = last;
    if (items[i].table) keepRows(document, *items[i].table, height);
  }
}

bool drawPages(QTextDocument& document, QPagedPaintDevice& device, const QString& foot) {
  QPainter painter;
  if (!painter.begin(&device)) return false;
  const QSizeF page = document.pageSize();
  QFont small = document.defaultFont();
  small.setPointSizeF(kFootSize);
  const QColor muted = Tokens::of(Theme::kLight).muted, border = Tokens::of(Theme::kLight).border;  // paper is light
  for (int i = 0; i < document.pageCount(); ++i) {
    if (i > 0 && !device.newPage()) return false;
    QAbstractTextDocumentLayout::PaintContext context;
    context.palette.setColor(QPalette::Text, Qt::black);
    context.clip = QRectF(QPointF(0, i * page.height()), page);
    painter.save();
    painter.translate(0, -context.clip.top());
    painter.setClipRect(context.clip);
    document.documentLayout()->draw(&painter, context);
    painter.restore();
    const QRectF line(0, page.height() + kFoot * device.logicalDpiY() / 3, device.width(),
                      device.height() - page.height() - kFoot * device.logicalDpiY() / 3);
    painter.setFont(small);
    painter.setPen(QPen(border, device.logicalDpiY() / 96.0));
    painter.drawLine(line.topLeft(), line.topRight());
    painter.setPen(muted);
    const QString number = QStringLiteral("%1 of %2").arg(i + 1).arg(document.pageCount());
    painter.drawText(line, Qt::AlignRight | Qt::AlignBottom, number);
    const QFontMetricsF metrics(small, &device);
    painter.drawText(line, Qt::AlignLeft | Qt::AlignBottom,
                     metrics.elidedText(foot, Qt::ElideMiddle, line.width() - 2 * metrics.horizontalAdvance(number)));
  }
  return painter.end();
}

}  // namespace stepscope
