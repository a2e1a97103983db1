// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/print/printed_table.h"

#include <QPainter>
#include <algorithm>

#include "app/workbench/print/printed_drawing.h"
#include "app/workbench/print/set_text.h"

namespace stepscope::print {
namespace {

using storage::doc::Cell;
using storage::doc::Column;
using storage::doc::Style;
using storage::doc::Table;
using storage::doc::Text;

constexpr double kRounding = 1;  // a text set in its own width shall not wrap
constexpr double kGap = 12, kPadding = 2.5, kBar = 48, kBarHeight = 8, kPlot = 110, kIndent = 14, kLeastText = 70;
constexpr double kBarOpacity = 0.4;
constexpr std::size_t kShortTable = 8, kFirstRows = 3;  // rows that stand together

bool numeric(const Column& column) { return column.right || column.quantity != storage::doc::Quantity::kText; }

Text textOf(const Column& column, const Cell& cell) {
  const Text* own = std::get_if<Text>(&cell.value);
  Text text = own ? *own : Text(storage::doc::shownText(column, cell));
  if (!cell.points.empty()) {
    text.add((text.empty() ? "" : "\n") + cell.pointsTitle + ":", Style::kDim);
    for (const Text& point : cell.points) text.add("\n– " + point.plain(), Style::kDim);
  }
  return text;
}

TextLook lookOf(const Column& column, const Cell& cell) {
  TextLook look;
  look.size = kSmallSize;
  look.right = numeric(column);
  look.swatch = cell.swatch;
  if (column.dim) look.colour = inkOf("muted");
  return look;
}

// What stands beside the text of a cell.
double besideText(const Paper& paper, const Cell& cell) {
  return paper.px(cell.indent * kIndent + (cell.bar ? kBar + 6 : 0));
}

struct Columns {
  std::vector<double> left, width;  // of the texts
};

Columns columnsOf(const Paper& paper, const Table& table) {
  const std::size_t n = table.columns.size();
  std::vector<double> wanted(n), least(n);
  for (std::size_t c = 0; c < n; ++c) {
    TextLook head;
    head.size = kSmallSize;
    if (table.heads) wanted[c] = SetText(paper, table.columns[c].label, head, 0).width() + paper.px(kRounding);
  }
  for (const auto& row : table.rows) {
    std::size_t at = 0;
    for (const Cell& cell : row) {
      if (at >= n) break;
      if (cell.span == 1) {
        const double own =
            cell.plot ? paper.px(kPlot)
                      : SetText(paper, textOf(table.columns[at], cell), lookOf(table.columns[at], cell), 0).width() +
                            besideText(paper, cell);
        wanted[at] = std::max(wanted[at], own + paper.px(kRounding));
      }
      at += static_cast<std::size_t>(cell.span);
    }
  }
  for (std::size_t c = 0; c < n; ++c)
    least[c] = numeric(table.columns[c]) ? wanted[c] : std::min(wanted[c], paper.px(kLeastText));
  Columns columns;
  columns.width = sharedWidths(wanted, least, paper.width - paper.px(kGap) * static_cast<double>(n - 1));
  double left = 0;
  for (const double width : columns.width) {
    columns.left.push_back(left);
    left += width + paper.px(kGap);
  }
  return columns;
}

struct SetCell {
  double left = 0, width = 0;
  std::shared_ptr<const SetText> text;
  std::optional<storage::doc::Bar> bar;
  std::optional<storage::doc::Drawing> plot;
};

void drawCell(QPainter& painter, const Paper& paper, const SetCell& cell, double top) {
  if (cell.bar) {
    painter.save();
    painter.setOpacity(kBarOpacity);
    const double middle = top + cell.text->height() / 2;
    const double height = paper.px(kBarHeight);
    painter.fillRect(QRectF(cell.left, middle - height / 2, paper.px(kBar) * cell.bar->width, height),
                     inkOf(cell.bar->colour));
    painter.restore();
  }
  if (cell.plot) return drawDrawing(painter, paper, *cell.plot, {cell.left, top}, paper.px(kPlot));
  cell.text->draw(painter, {cell.left + (cell.bar ? paper.px(kBar + 6) : 0), top});
}

Piece rowPiece(const Paper& paper, std::vector<SetCell> cells, double right, const char* line) {
  Piece piece;
  for (const SetCell& cell : cells) {
    const double own = cell.plot ? heightOf(*cell.plot, paper.px(kPlot)) : cell.text->height();
    piece.height = std::max(piece.height, own + 2 * paper.px(kPadding));
  }
  piece.draw = [paper, cells = std::move(cells), right, line, height = piece.height](QPainter& painter, double top) {
    painter.setPen(QPen(inkOf(line), paper.px(1)));
    painter.drawLine(QPointF(0, top + height), QPointF(right, top + height));
    for (const SetCell& cell : cells) drawCell(painter, paper, cell, top + paper.px(kPadding));
  };
  return piece;
}

Piece headPiece(const Paper& paper, const Table& table, const Columns& columns, double right) {
  std::vector<SetCell> cells;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    TextLook look;
    look.size = kSmallSize;
    look.colour = inkOf("muted");
    look.right = numeric(table.columns[c]);
    SetCell cell{columns.left[c], columns.width[c]};
    cell.text = std::make_shared<SetText>(paper, table.columns[c].label, look, columns.width[c]);
    cells.push_back(std::move(cell));
  }
  return rowPiece(paper, std::move(cells), right, "border");
}

Piece bodyPiece(const Paper& paper, const Table& table, const Columns& columns, const std::vector<Cell>& row, double right) {
  std::vector<SetCell> cells;
  std::size_t at = 0;
  for (const Cell& cell : row) {
    if (at >= table.columns.size()) break;
    const std::size_t last = std::min(at + static_cast<std::size_t>(std::max(1, cell.span)), table.columns.size()) - 1;
    const double indent = paper.px(cell.indent * kIndent);
    SetCell set{columns.left[at] + indent, columns.left[last] + columns.width[last] - columns.left[at] - indent};
    set.bar = cell.bar;
    set.plot = cell.plot;
    const double room = std::max(set.width - (cell.bar ? paper.px(kBar + 6) : 0), paper.px(1));
    set.text = std::make_shared<SetText>(paper, textOf(table.columns[at], cell), lookOf(table.columns[at], cell), room);
    cells.push_back(std::move(set));
    at = last + 1;
  }
  return rowPiece(paper, std::move(cells), right, "grid");
}

}  // namespace

std::vector<double> sharedWidths(const std::vector<double>& wanted, const std::vector<double>& least, double width) {
  std::vector<double> widths = wanted;
  double sum = 0;
  for (const double w : widths) sum += w;
  // The widest give first, down to the next widest, until all fits or nobody can give.
  while (sum > width + 1e-6) {
    double most = 0, next = 0;
    std::size_t givers = 0;
    for (std::size_t c = 0; c < widths.size(); ++c)
      if (widths[c] > least[c] + 1e-6) most = std::max(most, widths[c]);
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (!(widths[c] > least[c] + 1e-6)) continue;
      if (widths[c] >= most - 1e-6) {
        ++givers;
        next = std::max(next, least[c]);
      } else {
        next = std::max(next, widths[c]);
      }
    }
    if (givers == 0) break;
    const double give = std::min(most - next, (sum - width) / static_cast<double>(givers));
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (!(widths[c] > least[c] + 1e-6) || !(widths[c] >= most - 1e-6)) continue;
      widths[c] -= std::max(give, 1e-3);
      sum -= std::max(give, 1e-3);
    }
  }
  if (sum > width)  // nothing but numbers, and too many: all get smaller
    for (double& w : widths) w *= width / sum;
  return widths;
}

std::vector<Piece> tablePieces(const Paper& paper, const Table& table) {
  if (table.columns.empty()) return {};
  const Columns columns = columnsOf(paper, table);
  const double right = columns.left.back() + columns.width.back();
  std::vector<Piece> pieces;
  std::shared_ptr<const Piece> head;
  if (table.heads) {
    pieces.push_back(headPiece(paper, table, columns, right));
    head = std::make_shared<Piece>(pieces.front());
    pieces.front().withNext = true;
  }
  const bool together = table.rows.size() <= kShortTable;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    Piece piece = bodyPiece(paper, table, columns, table.rows[i], right);
    piece.head = head;
    piece.withNext = i + 1 < table.rows.size() && (together || i < kFirstRows);
    pieces.push_back(std::move(piece));
  }
  if (!pieces.empty()) pieces.back().withNext = false;
  return pieces;
}

}  // namespace stepscope::print
