#include "storage/report/html_writer.h"

#include <fmt/format.h>

#include "storage/report/format.h"
#include "storage/report/style.h"
#include "storage/report/svg_writer.h"

namespace stepscope::storage {
namespace {

using doc::Cell;
using doc::Column;
using doc::Style;
using doc::Text;

constexpr int kIndent = 18;  // pixels a level

// Line breaks are the document's own; all else is escaped.
std::string lines(std::string_view text) {
  std::string out = html(text);
  for (std::size_t at = 0; (at = out.find('\n', at)) != std::string::npos; at += 4) out.replace(at, 1, "<br>");
  return out;
}

std::string textOf(const Text& text) {
  std::string out;
  for (const doc::TextPart& part : text.parts) {
    const std::string shown = lines(part.text);
    switch (part.style) {
      case Style::kPlain: out += shown; break;
      case Style::kStrong: out += fmt::format("<b>{}</b>", shown); break;
      case Style::kSmall: out += fmt::format("<small>{}</small>", shown); break;
      case Style::kDim: out += fmt::format("<span class=dim>{}</span>", shown); break;
      case Style::kMono: out += fmt::format("<span class=mono>{}</span>", shown); break;
      case Style::kBad: out += fmt::format("<span class=bad>{}</span>", shown); break;
      case Style::kChip: out += fmt::format("<span class=\"chip {}\">{}</span>", part.colour, shown); break;
    }
  }
  return out;
}

std::string titleOf(std::string_view tooltip) {
  return tooltip.empty() ? std::string() : fmt::format(" title=\"{}\"", html(tooltip));
}

std::string swatch(doc::Colour colour) { return fmt::format("<i class=k style=\"background:var(--{})\"></i>", colour); }

bool numeric(const Column& column) { return column.right || column.quantity != doc::Quantity::kText; }

std::string classesOf(const Column& column, const Cell& cell) {
  std::string names;
  const auto add = [&names](bool has, const char* name) {
    if (has) names += (names.empty() ? "" : " ") + std::string(name);
  };
  add(cell.bar.has_value(), "bar");
  add(!numeric(column), "l");
  add(column.wraps, "w");
  add(column.mono, "mono");
  add(column.dim, "dim");
  return names;
}

std::string cellOf(const Column& column, const Cell& cell) {
  const std::string names = classesOf(column, cell);
  std::string out = "<td";
  if (!names.empty())
    out += names.find(' ') == std::string::npos ? fmt::format(" class={}", names) : fmt::format(" class=\"{}\"", names);
  if (cell.span > 1) out += fmt::format(" colspan={}", cell.span);
  if (cell.indent > 0) out += fmt::format(" style=\"padding-left:{}px\"", cell.indent * kIndent);
  out += titleOf(cell.tooltip.empty() ? doc::exactText(column, cell) : cell.tooltip) + '>';
  if (cell.plot) return out + svgOf(*cell.plot) + "</td>";
  if (!cell.swatch.empty()) out += swatch(cell.swatch);
  const Text* text = std::get_if<Text>(&cell.value);
  const std::string shown = text ? textOf(*text) : html(doc::shownText(column, cell));
  if (cell.bar)
    out += fmt::format("<i style=\"--w:{:.4f};background:var(--{})\"></i><span>{}</span>", cell.bar->width, cell.bar->colour,
                       shown);
  else
    out += shown;
  if (!cell.points.empty()) {
    out += fmt::format("<details><summary>{}</summary><ul>", html(cell.pointsTitle));
    for (const Text& point : cell.points) out += fmt::format("<li>{}</li>", textOf(point));
    out += "</ul></details>";
  }
  return out + "</td>";
}

std::string blockOf(const doc::Paragraph& p) {
  const char* names[] = {"", " class=sub", " class=empty", " class=bad"};
  return fmt::format("<p{}>{}</p>\n", names[static_cast<int>(p.kind)], textOf(p.text));
}

std::string blockOf(const doc::Heading& heading) { return fmt::format("<h3>{}</h3>\n", html(heading.text)); }

std::string blockOf(const doc::FactLists& lists) {
  std::string out = "<div class=two>";
  for (const doc::FactList& list : lists.lists) {
    out += fmt::format("<div><h3>{}</h3><dl class=kv>", html(list.title));
    for (const doc::Fact& fact : list.facts)
      out += fmt::format("<dt>{}</dt><dd>{}</dd>", html(fact.name), textOf(fact.value));
    out += "</dl></div>";
  }
  return out + "</div>\n";
}

std::string blockOf(const doc::Tiles& tiles) {
  std::string out = "<dl class=tiles>";
  for (const doc::Tile& tile : tiles.tiles)
    out += fmt::format("<div class=tile{}><dt>{}</dt><dd>{}</dd><p>{}</p></div>", titleOf(tile.tooltip), html(tile.label),
                       textOf(tile.value), html(tile.foot));
  return out + "</dl>\n";
}

std::string blockOf(const doc::Table& table) {
  std::string out = "<div class=scroll><table><thead><tr>";
  for (const Column& column : table.columns)
    out += fmt::format("<th{}{}>{}</th>", numeric(column) ? "" : " class=l", titleOf(column.tooltip), html(column.label));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    std::size_t at = 0;
    for (const Cell& cell : row) {
      if (at >= table.columns.size()) break;
      out += cellOf(table.columns[at], cell);
      at += static_cast<std::size_t>(cell.span);
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (table.folded.empty()) return out;
  return fmt::format("<details style=\"margin-top:14px\"><summary>{}</summary>{}</details>\n", html(table.folded), out);
}

std::string blockOf(const doc::Stack& stack) {
  std::string out = "<div class=stack>";
  for (const doc::StackPart& part : stack.parts)
    out += fmt::format("<i style=\"flex:{:.5f};background:var(--{})\"{}></i>", std::max(part.share, 1e-4), part.colour,
                       titleOf(part.label));
  return out + "</div>\n";
}

std::string blockOf(const doc::Legend& legend) {
  std::string out = "<div class=legend>";
  if (!legend.title.empty()) out += fmt::format("<span>{}</span>", html(legend.title));
  for (const doc::LegendItem& item : legend.items) {
    const std::string mark =
        item.line ? fmt::format("<i class=k style=\"background:var(--{});height:2px;vertical-align:4px\"></i>", item.colour)
                  : swatch(item.colour);
    out += fmt::format("<span{}>{}{}{}</span>", titleOf(item.tooltip), mark, html(item.label),
                       item.value.empty() ? "" : fmt::format(" <b>{}</b>", html(item.value)));
  }
  return out + "</div>\n";
}

std::string blockOf(const doc::Notices& notices) {
  std::string out = "<div class=alerts>";
  for (const doc::Notice& notice : notices.notices)
    out += fmt::format("<div class=alert><span class=\"chip {}\">{}</span><p>{}</p><span class=at>{}</span></div>\n",
                       notice.colour, html(notice.kind), lines(notice.text), html(notice.place));
  return out + "</div>\n";
}

std::string blockOf(const doc::Bullets& bullets) {
  std::string out = "<ul class=bullets>";
  for (const Text& item : bullets.items) out += fmt::format("<li>{}</li>\n", textOf(item));
  return out + "</ul>\n";
}

std::string blockOf(const doc::Figure& figure) {
  return (figure.title.empty() ? "" : fmt::format("<h3>{}</h3>\n", html(figure.title))) + svgOf(figure.drawing);
}

std::string blockOf(const doc::Figures& figures) {
  std::string out = "<div class=three>";
  for (const doc::Figure& figure : figures.figures) out += fmt::format("<div>{}</div>", blockOf(figure));
  return out + "</div>\n";
}

std::string blocksOf(const std::vector<doc::Block>& blocks) {
  std::string out;
  for (const doc::Block& block : blocks) out += std::visit([](const auto& b) { return blockOf(b); }, block);
  return out;
}

}  // namespace

std::string htmlOf(const doc::Document& document) {
  std::string body, links;
  for (const doc::Section& section : document.sections) {
    links += fmt::format("<a href=\"#{}\">{}{}</a>", html(section.id), html(section.title),
                         section.counted > 0 ? fmt::format("<span class=n>{}</span>", section.counted) : "");
    body += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}{}</section>\n", html(section.id), html(section.title),
                        section.sub.empty() ? "" : fmt::format("<p class=sub>{}</p>\n", textOf(section.sub)),
                        blocksOf(section.blocks));
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n"
      "<title>{0} · Stepscope report</title>\n<style>{1}</style>\n</head>\n<body>\n<div class=page>\n<nav "
      "aria-label=\"Contents\"><b>Stepscope</b>{2}</nav>\n"
      "<main>\n<header>\n<h1>{0}</h1>\n{3}</header>\n{4}<footer>{5} · {6} · hover over a number for its full "
      "precision</footer>\n</main>\n</div>\n</body>\n</html>\n",
      html(document.title), reportStyle(), links, blocksOf(document.lead), body, html(document.about), html(document.notes));
}

}  // namespace stepscope::storage
