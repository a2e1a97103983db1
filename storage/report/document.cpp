#include "storage/report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/snapshot/units.h"

namespace stepscope::storage::doc {
namespace {

std::string numberText(Quantity quantity, double x) {
  switch (quantity) {
    case Quantity::kTime: return units::time(x);
    case Quantity::kBytes: return units::bytes(x);
    case Quantity::kShare: return units::percent(x);
    case Quantity::kFactor: return fmt::format("{:.3f}", x);
    case Quantity::kFlopRate: return units::flopRate(x, 1e9);
    case Quantity::kByteRate: return units::byteRate(x, 1e9);
    case Quantity::kCount: return units::count(std::llround(std::clamp(x, -9e18, 9e18)));
    case Quantity::kText:
    case Quantity::kNumber: break;
  }
  return units::numberShort(x);
}

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

Text& Text::add(std::string text, Style style, Colour colour) {
  if (!text.empty()) parts.push_back({std::move(text), style, colour});
  return *this;
}

std::string Text::plain() const {
  std::string all;
  for (const TextPart& part : parts) all += part.text;
  return all;
}

Cell::Cell(std::optional<double> number) {
  if (number) value = *number;
}

Cell& Cell::withTooltip(std::string text) {
  tooltip = std::move(text);
  return *this;
}

Cell& Cell::withSwatch(Colour colour) {
  swatch = colour;
  return *this;
}

Cell& Cell::withBar(double width, Colour colour) {
  bar = Bar{std::clamp(std::isfinite(width) ? width : 0.0, 0.0, 1.0), colour};
  return *this;
}

Cell& Cell::withSpan(int columns) {
  span = columns;
  return *this;
}

Heading::Heading(std::string_view words) : text(words) {}

std::string shownText(const Column& column, const Cell& cell) {
  return std::visit(Overloaded{[](std::monostate) { return std::string(); }, [](const Text& text) { return text.plain(); },
                               [&](std::int64_t n) {
                                 const bool counted = column.quantity == Quantity::kNumber ||
                                                      column.quantity == Quantity::kText ||
                                                      column.quantity == Quantity::kCount;
                                 return counted ? units::count(n) : numberText(column.quantity, static_cast<double>(n));
                               },
                               [&](double x) { return numberText(column.quantity, x); }},
                    cell.value);
}

std::string exactText(const Column& column, const Cell& cell) {
  const auto* whole = std::get_if<std::int64_t>(&cell.value);
  const auto* real = std::get_if<double>(&cell.value);
  if (!whole && !real) return {};
  const double x = whole ? static_cast<double>(*whole) : *real;
  switch (column.quantity) {
    case Quantity::kTime: return units::timeExact(x);
    case Quantity::kBytes:
      return whole ? units::bytesExact(*whole) : units::count(std::llround(std::clamp(x, -9e18, 9e18))) + " bytes";
    case Quantity::kNumber:
    case Quantity::kFactor:
    case Quantity::kShare: return real ? fmt::format("{}", x) : std::string();
    default: return {};
  }
}

Section emptySection(std::string id, std::string title, std::string_view why) {
  return {std::move(id), std::move(title), {}, {Paragraph{why, Paragraph::Kind::kEmpty}}};
}

Cell shareCell(double share, Colour colour, double largest) {
  return Cell(share).withBar(largest > 0 ? share / largest : 0, colour);
}

void addStatsColumns(std::vector<Column>& columns) {
  columns.push_back({"n", "number of measurements", Quantity::kCount});
  for (const auto& [label, tooltip] : {std::pair("total", "sum of all measurements"),
                                       {"mean", "arithmetic mean; read it beside the median"},
                                       {"median", "half of the measurements are shorter"},
                                       {"p95", "95 % of the measurements are shorter"},
                                       {"min", "shortest measurement"},
                                       {"max", "longest measurement"}})
    columns.push_back({label, tooltip, Quantity::kTime});
}

void addStats(std::vector<Cell>& row, const TimeStats& stats) {
  row.emplace_back(stats.n);
  if (stats.n == 0) {
    row.push_back(Cell(Text().add("not measured", Style::kDim)).withSpan(6));
    return;
  }
  for (const Cell& cell :
       {Cell(stats.total), Cell(stats.mean), Cell(stats.median), Cell(stats.p95), Cell(stats.min), Cell(stats.max)})
    row.push_back(cell);
}

Colour categoryColour(std::string_view category) {
  for (const Colour known : {"matmul", "convolution", "normalization", "activation", "elementwise", "movement", "reduction",
                             "loss", "optimizer", "random", "control"})
    if (category == known) return known;
  return "other";
}

Colour phaseColour(std::string_view phase) {
  for (const Colour known : {"forward", "backward", "recompute", "optimizer"})
    if (phase == known) return known;
  return "other";
}

}  // namespace stepscope::storage::doc
