#include "storage/report/text_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kWidestText = 120;  // of a column of a table

std::size_t lettersOf(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(std::string text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, lettersOf(text)), ' ');
  return right ? space + text : std::move(text) + space;
}

// A cell has one line: what is below its first line stands behind it.
std::string oneLine(std::string_view text) {
  std::string out = visibleText(text);
  for (std::size_t at = 0; (at = out.find('\n', at)) != std::string::npos; at += 3) out.replace(at, 1, " · ");
  return out;
}

bool numeric(const doc::Column& column) { return column.right || column.quantity != doc::Quantity::kText; }

std::string cellText(const doc::Column& column, const doc::Cell& cell) {
  if (cell.plot) return {};
  const std::string text = oneLine(doc::shownText(column, cell));
  return std::string(static_cast<std::size_t>(cell.indent) * 2, ' ') + (numeric(column) ? text : elided(text, kWidestText));
}

std::string blockOf(const doc::Paragraph& p) { return visibleText(p.text.plain()) + '\n'; }
std::string blockOf(const doc::Heading& heading) { return visibleText(heading.text) + '\n'; }

std::string blockOf(const doc::FactLists& lists) {
  std::string out;
  for (const doc::FactList& list : lists.lists) {
    out += (out.empty() ? "" : "\n") + visibleText(list.title) + '\n';
    for (const doc::Fact& fact : list.facts)
      out += fmt::format("  {}  {}\n", padded(fact.name, 14, false), oneLine(fact.value.plain()));
  }
  return out;
}

std::string blockOf(const doc::Tiles& tiles) {
  std::string out;
  for (const doc::Tile& tile : tiles.tiles)
    out += fmt::format("{}  {}  ({})\n", padded(tile.label, 22, false), visibleText(tile.value.plain()),
                       visibleText(tile.foot));
  return out;
}

std::string blockOf(const doc::Table& table) { return plainTextOf(table); }

std::string blockOf(const doc::Stack&) { return {}; }  // its legend, or the table below it, says the same

std::string blockOf(const doc::Legend& legend) {
  std::string out;
  for (const doc::LegendItem& item : legend.items)
    if (!item.value.empty()) out += fmt::format("  {}  {}\n", padded(item.label, 16, false), item.value);
  return out.empty() || legend.title.empty() ? out : visibleText(legend.title) + '\n' + out;
}

std::string blockOf(const doc::Notices& notices) {
  std::string out;
  for (const doc::Notice& n : notices.notices)
    out += fmt::format("{}: {}{}\n", n.kind, oneLine(n.text), n.place.empty() ? "" : " (" + n.place + ")");
  return out;
}

std::string blockOf(const doc::Bullets& bullets) {
  std::string out;
  for (const doc::Text& item : bullets.items) out += "- " + oneLine(item.plain()) + '\n';
  return out;
}

std::string blockOf(const doc::Figure& figure) {
  if (figure.summary.empty()) return {};
  return fmt::format("{}: {}\n", visibleText(figure.title.empty() ? figure.drawing.label : figure.title),
                     visibleText(figure.summary));
}

std::string blockOf(const doc::Figures& figures) {
  std::string out;
  for (const doc::Figure& figure : figures.figures) out += blockOf(figure);
  return out;
}

std::string blocksOf(const std::vector<doc::Block>& blocks) {
  std::string out;
  for (const doc::Block& block : blocks) {
    const std::string text = std::visit([](const auto& b) { return blockOf(b); }, block);
    if (!text.empty() && !out.empty()) out += '\n';
    out += text;
  }
  return out;
}

}  // namespace

std::string plainTextOf(const doc::Table& table) {
  std::vector<std::size_t> widths;
  for (const doc::Column& column : table.columns) widths.push_back(lettersOf(column.label));
  std::vector<std::vector<std::string>> rows;
  for (const auto& cells : table.rows) {
    auto& row = rows.emplace_back(table.columns.size());
    std::size_t at = 0;
    for (const doc::Cell& cell : cells) {
      if (at >= row.size()) break;
      row[at] = cellText(table.columns[at], cell);
      if (cell.span == 1) widths[at] = std::max(widths[at], lettersOf(row[at]));
      at += static_cast<std::size_t>(cell.span);
    }
  }
  std::string out = table.folded.empty() ? std::string() : visibleText(table.folded) + '\n';
  const auto line = [&](const auto& textAt) {
    std::string text;
    for (std::size_t c = 0; c < widths.size(); ++c)
      text += (c > 0 ? "  " : "") + padded(textAt(c), widths[c], numeric(table.columns[c]));
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](std::size_t c) { return table.columns[c].label; });
  for (const auto& row : rows) line([&](std::size_t c) { return row[c]; });
  return out;
}

std::string plainTextOf(const doc::Document& document) {
  const auto underlined = [](const std::string& text, char mark) {
    return text + '\n' + std::string(lettersOf(text), mark) + '\n';
  };
  std::string out = underlined(visibleText(document.title), '=') + blocksOf(document.lead);
  for (const doc::Section& section : document.sections) {
    out += '\n' + underlined(visibleText(section.title), '-');
    if (!section.sub.empty()) out += visibleText(section.sub.plain()) + '\n';
    const std::string body = blocksOf(section.blocks);
    if (!body.empty()) out += '\n' + body;
  }
  return out + '\n' + visibleText(document.about) + " · " + visibleText(document.notes) + '\n';
}

}  // namespace stepscope::storage
