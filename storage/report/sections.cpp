#include "storage/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/report/format.h"

namespace stepscope::storage {

std::string section(std::string_view id, std::string_view title, std::string_view sub, std::string_view body) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}{}\n</section>\n", id, title,
                     sub.empty() ? "" : fmt::format("<p class=sub>{}</p>\n", sub), body);
}

std::string emptyNote(std::string_view text) { return fmt::format("<p class=empty>{}</p>", html(text)); }

std::string timeCell(double ns) {
  return fmt::format("<td title=\"{} ns\">{}</td>", countText(std::llround(ns)), timeText(ns));
}

std::string bytesCell(std::int64_t bytes) {
  return fmt::format("<td title=\"{} bytes\">{}</td>", countText(bytes), bytesText(bytes));
}

std::string shareCell(double share, std::string_view colour, double largest) {
  const double width = largest > 0 ? std::clamp(share / largest, 0.0, 1.0) : 0;
  return fmt::format("<td class=bar><i style=\"--w:{:.4f};background:var(--{})\"></i><span>{}</span></td>", width, colour,
                     percentText(share));
}

std::string head(std::string_view label, std::string_view tooltip, bool number) {
  return fmt::format("<th{} title=\"{}\">{}</th>", number ? "" : " class=l", tooltip, label);
}

std::string_view categoryToken(std::string_view category) {
  for (std::string_view known : {"matmul", "convolution", "normalization", "activation", "elementwise", "movement",
                                 "reduction", "loss", "optimizer", "random", "control"})
    if (category == known) return known;
  return "other";
}

std::string_view phaseToken(std::string_view phase) {
  for (std::string_view known : {"forward", "backward", "recompute", "optimizer"})
    if (phase == known) return known;
  return "other";
}

std::string rate(double amount, double ns, const char* unit) {
  if (!(amount > 0) || !(ns > 0)) return "";
  return fmt::format("{:.3g} {}", amount / ns, unit);
}

std::string statsHead() {
  return head("n", "number of measurements") + head("total", "sum of all measurements") +
         head("mean", "arithmetic mean; read it beside the median") +
         head("median", "half of the measurements are shorter") + head("p95", "95 % of the measurements are shorter") +
         head("min", "shortest measurement") + head("max", "longest measurement");
}

std::string statsCells(const TimeStats& stats) {
  if (stats.n == 0) return "<td>0</td><td class=dim colspan=6>not measured</td>";
  return fmt::format("<td>{}</td>", countText(stats.n)) + timeCell(static_cast<double>(stats.total)) + timeCell(stats.mean) +
         timeCell(static_cast<double>(stats.median)) + timeCell(static_cast<double>(stats.p95)) +
         timeCell(static_cast<double>(stats.min)) + timeCell(static_cast<double>(stats.max));
}

}  // namespace stepscope::storage
