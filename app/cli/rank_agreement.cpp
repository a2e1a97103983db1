#include "app/cli/rank_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stepscope::cli {
namespace {

// Options whose names begin so are a matter of each rank.
constexpr std::array<std::string_view, 17> kOwn{
    "data",           "threads", "device",     "cuda.streams", "streams.partition", "cache.dir",
    "memory.limit",   "record",  "roofline",   "long.ms",      "checkpoint.",       "ring.bytes",
    "variants.bytes", "plugin",  "loss-graph", "optimizer-gr", "start-state"};

// Name and value, each with a 0 behind it, which neither has in it.
std::string packed(const Lines& lines) {
  std::string text;
  for (const auto& [name, value] : lines) (text += name) += '\0', (text += value) += '\0';
  return text;
}
Lines unpacked(const std::string& text) {
  Lines lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::string name = text.c_str() + at;
    at += name.size() + 1;
    const std::string value = at < text.size() ? text.c_str() + at : "";
    at += value.size() + 1;
    lines.emplace_back(name, value);
  }
  return lines;
}

std::string said(const Lines& lines, std::size_t k) {
  return k < lines.size() ? fmt::format("{} is '{}'", lines[k].first, lines[k].second) : "there is no more";
}

}  // namespace

Lines linesOf(const TrainOptions& options) {
  Lines lines;
  for (const auto& [name, origin] : options.origins)
    if (std::none_of(kOwn.begin(), kOwn.end(), [&](std::string_view own) { return name.starts_with(own); }))
      lines.emplace_back(fmt::format("option '{}'", name), origin.value);
  return lines;
}

Lines linesOf(const Graph& imported) {
  Lines lines;
  const auto add = [&](const char* what, ValueId value) {
    lines.emplace_back(fmt::format("{} '{}'", what, imported.value(value).name), imported.value(value).type.text());
  };
  for (const ValueId value : imported.inputs()) add("input", value);
  for (const ValueId value : imported.outputs()) add("output", value);
  for (const NodeId id : imported.order()) {
    const Node& node = imported.node(id);
    std::string operands;
    for (const ValueId value : node.inputs)
      operands += fmt::format("{}{}", operands.empty() ? "" : ", ", value ? imported.value(value).name.str() : "-");
    lines.emplace_back(fmt::format("node '{}'", node.name), fmt::format("{}({})", node.op, operands));
  }
  return lines;
}

Status sameOnAllRanks(Ranks& ranks, const std::string& what, const Lines& mine) {
  std::string text = packed(mine);
  std::vector<double> lengths;
  const double length = static_cast<double>(text.size());
  SS_TRY(ranks.gather({"length of " + what, 0}, std::span(&length, 1), lengths));
  if (ranks.rank() != 0) text.resize(static_cast<std::size_t>(lengths[0]));
  const TensorView view{text.data(), DType::kU8, {static_cast<std::int64_t>(text.size())}};
  SS_TRY(ranks.communicator().broadcast({what, 0}, std::span(&view, 1), 0));
  const Lines first = unpacked(text);
  if (first == mine) return {};
  std::size_t k = 0;
  while (k < first.size() && k < mine.size() && first[k] == mine[k]) ++k;
  // An option that one of them has not set is in the way of the next one.
  const bool lacks = k < first.size() && (k >= mine.size() || mine[k].first > first[k].first);
  const bool has = k < mine.size() && (k >= first.size() || mine[k].first < first[k].first);
  if (what == "options" && (lacks || has))
    return invalid(fmt::format("{} is {}, rank 0 has {}; expected the same on all ranks",
                               lacks ? first[k].first : mine[k].first,
                               lacks ? "not set" : fmt::format("'{}'", mine[k].second),
                               lacks ? fmt::format("'{}'", first[k].second) : "not set it"));
  const std::string theirs = k < first.size() && k < mine.size() && first[k].first == mine[k].first
                                 ? fmt::format("'{}'", first[k].second)
                                 : said(first, k);
  return invalid(fmt::format("{}, {} {}; expected the same on all ranks", said(mine, k),
                             theirs.starts_with('\'') ? "rank 0 has" : "on rank 0", theirs));
}

}  // namespace stepscope::cli
