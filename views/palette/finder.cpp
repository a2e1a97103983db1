// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/palette/finder.h"

#include <algorithm>
#include <map>

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

Selection Found::target() const {
  if (kind == kSource) {
    Selection s = Selection::ofNode(id);
    s.file = file;
    s.line = line;
    return s;
  }
  return kind == kNode ? Selection::ofNode(id) : kind == kValue ? Selection::ofValue(id) : Selection::ofInstruction(id);
}

std::shared_ptr<const Finder> Finder::make(GraphPtr graph, PlanPtr plan) {
  auto finder = std::make_shared<Finder>();
  finder->graph_ = std::move(graph);
  finder->plan_ = std::move(plan);
  if (!finder->graph_) return finder;
  const auto& g = finder->graph_->graph();
  finder->entries_.reserve(static_cast<std::size_t>(g.nodes_size() + g.values_size()));
  const auto add = [&finder](Found::Kind kind, int id, const std::string& name, const std::string& more) {
    // Folding letter by letter of ASCII is enough for names of graphs; other letters are matched as they are.
    const auto begin = finder->text_.size();
    for (const std::string* part : {&name, &more}) {
      for (const char c : *part) finder->text_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
    if (finder->text_.size() > (std::size_t{1} << 31)) {
      finder->text_.resize(begin);
      return;
    }
    finder->entries_.push_back({kind, id, static_cast<std::uint32_t>(begin),
                                static_cast<std::uint32_t>(finder->text_.size() - begin),
                                static_cast<std::uint32_t>(name.size())});
  };
  for (const auto& node : g.nodes())
    add(Found::kNode, node.id(), node.name(), ' ' + node.op() + ' ' + node.provenance().module_path());
  for (const auto& value : g.values()) add(Found::kValue, value.id(), value.name(), {});
  std::map<std::pair<std::string_view, int>, std::size_t> known;
  for (const auto& node : g.nodes()) {
    const auto& p = node.provenance();
    if (p.source_file().empty()) continue;
    const auto [it, fresh] = known.try_emplace({p.source_file(), p.source_line()}, finder->sources_.size());
    if (!fresh) {
      ++finder->sources_[it->second].nodes;
      continue;
    }
    finder->sources_.push_back({p.source_file(), p.source_code(), p.source_line(), node.id(), 1});
  }
  for (std::size_t i = 0; i < finder->sources_.size(); ++i) {
    const Source& line = finder->sources_[i];
    add(Found::kSource, static_cast<int>(i), line.file.substr(line.file.rfind('/') + 1) + ':' + std::to_string(line.line),
        ' ' + line.code + ' ' + line.file);
  }
  return finder;
}

Found Finder::describe(const Entry& entry) const {
  Found f;
  f.kind = entry.kind;
  f.id = entry.id;
  if (entry.kind == Found::kNode) {
    f.title = names::node(*graph_, entry.id);
    const auto* node = graph_->node(entry.id);
    const int at = plan_ ? plan_->instructionOfNode(entry.id) : -1;
    f.detail = names::phase(node->phase()).toLower() + QStringLiteral(" · ") + format::visible(node->name());
    if (at >= 0) f.detail = QStringLiteral("%1 · ").arg(at) + f.detail;
    f.category = QString::fromStdString(node->category());
  } else if (entry.kind == Found::kValue) {
    const auto* value = graph_->value(entry.id);
    f.title = names::value(*graph_, entry.id);
    f.detail = names::role(*value) + QStringLiteral(" · ") + names::shapeAndType(*value);
  } else if (entry.kind == Found::kSource) {
    const Source& source = sources_[static_cast<std::size_t>(entry.id)];
    f.id = source.node;
    f.file = QString::fromStdString(source.file);
    f.line = source.line;
    f.title = QStringLiteral("%1:%2").arg(format::visible(source.file.substr(source.file.rfind('/') + 1))).arg(source.line);
    f.detail = QStringLiteral("source line · %1 nodes · ").arg(source.nodes) + format::visible(source.code);
  } else {
    const auto* in = plan_->instruction(entry.id);
    f.title = QStringLiteral("%1  %2").arg(entry.id).arg(format::visible(in->label()));
    f.detail = QStringLiteral("instruction");
  }
  return f;
}

std::vector<Found> Finder::find(const QString& query, std::size_t most) const {
  std::vector<Found> out;
  const QByteArray folded = query.trimmed().toLower().toUtf8();
  // A number is an instruction first of all.
  bool isNumber = false;
  const int number = query.trimmed().toInt(&isNumber);
  if (isNumber && plan_ && plan_->instruction(number)) out.push_back(describe({Found::kInstruction, number, 0, 0, 0}));
  std::vector<std::string> words;
  for (const QByteArray& w : folded.split(' ')) {
    if (!w.isEmpty()) words.push_back(w.toStdString());
  }
  if (words.empty()) return out;
  const std::string whole = folded.toStdString();
  std::vector<std::pair<std::uint64_t, std::uint32_t>> hits;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    const std::string_view text(text_.data() + e.begin, e.length);
    std::size_t first = 0;
    bool all = true;
    for (const std::string& w : words) {
      const auto at = text.find(w);
      all = all && at != std::string_view::npos;
      if (!all) break;
      if (&w == &words.front()) first = at;
    }
    if (!all) continue;
    const std::string_view name = text.substr(0, e.nameLength);
    const auto boundary = [&] {
      return first == 0 || std::string_view("./_ :").find(text[first - 1]) != std::string_view::npos;
    };
    const std::uint64_t rank = name == whole ? 0 : name.starts_with(whole) ? 1 : boundary() ? 2 : 3;
    hits.emplace_back(rank << 40 | std::min<std::uint64_t>(e.length, 0xffffff) << 1 | (e.kind == Found::kValue),
                      static_cast<std::uint32_t>(i));
  }
  const auto end = hits.begin() + static_cast<std::ptrdiff_t>(std::min(most, hits.size()));
  std::partial_sort(hits.begin(), end, hits.end());
  for (auto it = hits.begin(); it != end; ++it) out.push_back(describe(entries_[it->second]));
  return out;
}

}  // namespace stepscope
