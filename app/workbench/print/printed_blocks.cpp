// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/print/printed_blocks.h"

#include <QPainter>
#include <algorithm>

#include "app/workbench/print/printed_drawing.h"
#include "app/workbench/print/printed_table.h"
#include "app/workbench/print/set_text.h"

namespace stepscope::print {
namespace {

using storage::doc::Style;
using storage::doc::Text;
namespace doc = storage::doc;

constexpr double kSection = 26, kBlock = 10, kLine = 3;  // free above a section, a block, a line of a list
constexpr double kTitle = 23, kSectionTitle = 16, kBlockTitle = 11.5, kLarge = 16;
constexpr double kStackHeight = 14, kBetween = 18;

Piece textPiece(const Paper& paper, const Text& text, const TextLook& look, double before) {
  auto set = std::make_shared<SetText>(paper, text, look, paper.width);
  Piece piece;
  piece.height = set->height();
  piece.before = paper.px(before);
  piece.draw = [set](QPainter& painter, double top) { set->draw(painter, {0, top}); };
  return piece;
}

Piece headingPiece(const Paper& paper, const Text& text, double size, double before) {
  TextLook look;
  look.size = size;
  look.bold = true;
  Piece piece = textPiece(paper, text, look, before);
  piece.withNext = true;
  return piece;
}

// Cells next to each other, as high as the highest.
struct Slot {
  double left = 0;
  std::shared_ptr<const SetText> text;
};
Piece rowOf(std::vector<Slot> cells) {
  Piece piece;
  for (const Slot& slot : cells) piece.height = std::max(piece.height, slot.text->height());
  piece.draw = [cells = std::move(cells)](QPainter& painter, double top) {
    for (const Slot& slot : cells) slot.text->draw(painter, {slot.left, top});
  };
  return piece;
}

std::shared_ptr<const SetText> setIn(const Paper& paper, const Text& text, double width, double size = kBodySize,
                                     doc::Colour colour = "text") {
  TextLook look;
  look.size = size;
  look.colour = inkOf(colour);
  return std::make_shared<SetText>(paper, text, look, width);
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Paragraph& p) {
  TextLook look;
  if (p.kind == doc::Paragraph::Kind::kBad) look.colour = inkOf("error");
  if (p.kind == doc::Paragraph::Kind::kExplains || p.kind == doc::Paragraph::Kind::kEmpty) look.colour = inkOf("muted");
  out.push_back(textPiece(paper, p.text, look, kBlock));
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Heading& heading) {
  out.push_back(headingPiece(paper, heading.text, kBlockTitle, kBlock + 4));
}

// A row for each pair of facts of the lists.
void add(std::vector<Piece>& out, const Paper& paper, const doc::FactLists& lists) {
  if (lists.lists.empty()) return;
  const double each = (paper.width - paper.px(kBetween)) / static_cast<double>(lists.lists.size()), name = each * 0.2;
  std::size_t rows = 0;
  std::vector<Slot> heads;
  for (std::size_t k = 0; k < lists.lists.size(); ++k) {
    rows = std::max(rows, lists.lists[k].facts.size());
    heads.push_back({static_cast<double>(k) * (each + paper.px(kBetween)),
                     setIn(paper, Text().add(lists.lists[k].title, Style::kStrong), each)});
  }
  out.push_back(rowOf(std::move(heads)));
  out.back().before = paper.px(kBlock);
  out.back().withNext = true;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<Slot> cells;
    for (std::size_t k = 0; k < lists.lists.size(); ++k) {
      if (i >= lists.lists[k].facts.size()) continue;
      const doc::Fact& fact = lists.lists[k].facts[i];
      const double left = static_cast<double>(k) * (each + paper.px(kBetween));
      cells.push_back({left, setIn(paper, Text().add(fact.name, Style::kDim), name)});
      cells.push_back({left + name, setIn(paper, fact.value, each - name)});
    }
    out.push_back(rowOf(std::move(cells)));
    out.back().before = paper.px(kLine);
  }
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Tiles& tiles) {
  if (tiles.tiles.empty()) return;
  constexpr double kInside = 9;
  const double each = paper.width / static_cast<double>(tiles.tiles.size()), inside = each - 2 * paper.px(kInside);
  struct Set {
    std::shared_ptr<const SetText> label, value, foot;
  };
  std::vector<Set> sets;
  double height = 0;
  for (const doc::Tile& tile : tiles.tiles) {
    sets.push_back({setIn(paper, tile.label, inside, kSmallSize, "muted"), setIn(paper, tile.value, inside, kLarge),
                    setIn(paper, tile.foot, inside, kSmallSize, "muted")});
    height = std::max(height, sets.back().label->height() + sets.back().value->height() + sets.back().foot->height());
  }
  Piece piece;
  piece.before = paper.px(kBlock);
  piece.height = height + 2 * paper.px(kInside);
  piece.draw = [paper, sets, each, height = piece.height](QPainter& painter, double top) {
    painter.setBrush(Qt::NoBrush);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const double left = static_cast<double>(i) * each;
      painter.setPen(QPen(inkOf("border"), paper.px(1)));
      painter.drawRect(QRectF(left, top, each, height));
      QPointF at(left + paper.px(kInside), top + paper.px(kInside));
      for (const auto& text : {sets[i].label, sets[i].value, sets[i].foot}) {
        text->draw(painter, at);
        at.ry() += text->height();
      }
    }
  };
  out.push_back(std::move(piece));
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Table& table) {
  if (!table.folded.empty()) {
    if (table.rows.size() > kMostRows) {
      add(out, paper,
          doc::Paragraph{table.folded + ": row by row in the reports as HTML, CSV and JSON.",
                         doc::Paragraph::Kind::kExplains});
      return;
    }
    add(out, paper, doc::Heading{table.folded});
  }
  std::vector<Piece> pieces = tablePieces(paper, table);
  if (!pieces.empty()) pieces.front().before = paper.px(kBlock);
  std::move(pieces.begin(), pieces.end(), std::back_inserter(out));
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Stack& stack) {
  Piece piece;
  piece.before = paper.px(kBlock);
  piece.height = paper.px(kStackHeight);
  piece.withNext = true;  // its legend, or the table that names its parts
  piece.draw = [paper, parts = stack.parts, height = piece.height](QPainter& painter, double top) {
    double left = 0;
    for (const doc::StackPart& part : parts) {
      const double width = std::clamp(part.share, 0.0, 1.0) * paper.width;
      painter.fillRect(QRectF(left, top, width, height), inkOf(part.colour));
      left += width;
    }
  };
  out.push_back(std::move(piece));
}

// As one text of coloured squares, which breaks where it has to.
void add(std::vector<Piece>& out, const Paper& paper, const doc::Legend& legend) {
  Text text;
  text.add(legend.title, Style::kDim);
  for (const doc::LegendItem& item : legend.items) {
    if (!text.empty()) text.add("    ");
    text.add(item.line ? "— " : "■ ", Style::kChip, item.colour).add(item.label, Style::kDim);
    if (!item.value.empty()) text.add(" " + item.value);
  }
  if (text.empty()) return;
  if (!out.empty()) out.back().withNext = true;  // it explains what is above it
  out.push_back(textPiece(paper, text, {}, kLine + 2));
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Notices& notices) {
  const double kind = paper.width * 0.07, place = paper.width * 0.18;
  for (const doc::Notice& notice : notices.notices) {
    out.push_back(rowOf({{0, setIn(paper, Text().add(notice.kind, Style::kChip, notice.colour), kind)},
                         {kind, setIn(paper, notice.text, paper.width - kind - place - paper.px(kBetween))},
                         {paper.width - place, setIn(paper, Text().add(notice.place, Style::kDim), place)}}));
    out.back().before = paper.px(kLine + 2);
  }
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Bullets& bullets) {
  const double left = paper.px(14);
  for (const Text& item : bullets.items) {
    out.push_back(rowOf({{0, setIn(paper, "–", left)}, {left, setIn(paper, item, paper.width - left)}}));
    out.back().before = paper.px(kLine);
  }
}

Piece figurePiece(const Paper& paper, const doc::Figure& figure, double width) {
  std::shared_ptr<const SetText> title =
      figure.title.empty() ? nullptr : setIn(paper, Text().add(figure.title, Style::kStrong), width);
  auto drawing = std::make_shared<const doc::Drawing>(figure.drawing);
  const double above = title ? title->height() + paper.px(5) : 0;
  Piece piece;
  piece.height = above + heightOf(*drawing, width);
  piece.before = paper.px(kBlock);
  piece.draw = [paper, title, drawing, above, width](QPainter& painter, double top) {
    if (title) title->draw(painter, {0, top});
    drawDrawing(painter, paper, *drawing, {0, top + above}, width);
  };
  return piece;
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Figure& figure) {
  if (!figure.drawing.empty()) out.push_back(figurePiece(paper, figure, paper.width));
}

void add(std::vector<Piece>& out, const Paper& paper, const doc::Figures& figures) {
  constexpr std::size_t kBeside = 3;
  const double width = (paper.width - paper.px(kBetween) * (kBeside - 1)) / kBeside;
  for (std::size_t first = 0; first < figures.figures.size(); first += kBeside) {
    std::vector<Piece> beside;
    Piece piece;
    piece.before = paper.px(kBlock);
    for (std::size_t i = first; i < std::min(first + kBeside, figures.figures.size()); ++i) {
      beside.push_back(figurePiece(paper, figures.figures[i], width));
      piece.height = std::max(piece.height, beside.back().height);
    }
    piece.draw = [beside = std::move(beside), step = width + paper.px(kBetween)](QPainter& painter, double top) {
      for (std::size_t i = 0; i < beside.size(); ++i) {
        painter.save();
        painter.translate(static_cast<double>(i) * step, 0);
        beside[i].draw(painter, top);
        painter.restore();
      }
    };
    out.push_back(std::move(piece));
  }
}

void addBlocks(std::vector<Piece>& out, const Paper& paper, const std::vector<doc::Block>& blocks) {
  for (const doc::Block& block : blocks) std::visit([&](const auto& b) { add(out, paper, b); }, block);
}

}  // namespace

std::vector<Piece> documentPieces(const Paper& paper, const doc::Document& document) {
  std::vector<Piece> out;
  out.push_back(headingPiece(paper, document.title, kTitle, 0));
  addBlocks(out, paper, document.lead);
  for (const doc::Section& section : document.sections) {
    if (!out.empty()) out.back().withNext = false;
    out.push_back(headingPiece(paper, section.title, kSectionTitle, kSection));
    if (!section.sub.empty()) {
      TextLook look;
      look.colour = inkOf("muted");
      out.push_back(textPiece(paper, section.sub, look, kLine));
      out.back().withNext = !section.blocks.empty();
    }
    addBlocks(out, paper, section.blocks);
  }
  if (!out.empty()) out.back().withNext = false;
  return out;
}

}  // namespace stepscope::print
