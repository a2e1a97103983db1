// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_search.h"

#include <algorithm>
#include <sstream>

namespace stepscope {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool contains(const std::string& text, const std::string& word) {  // word is in lower case
  return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) { return lower(a) == b; }) !=
         text.end();
}

const char* phaseName(snapshot::Phase phase) {
  switch (phase) {
    case snapshot::BACKWARD: return "backward";
    case snapshot::RECOMPUTE: return "recompute";
    case snapshot::OPTIMIZER: return "optimizer";
    default: return "forward";
  }
}

struct Word {
  std::string field, text;
  bool exclude = false;
};

std::vector<Word> wordsOf(const std::string& query) {
  std::vector<Word> words;
  std::istringstream in(query);
  for (std::string part; in >> part;) {
    Word word;
    if (part.size() > 1 && part[0] == '-') {
      word.exclude = true;
      part.erase(0, 1);
    }
    std::transform(part.begin(), part.end(), part.begin(), lower);
    for (const char* field : {"op:", "name:", "path:", "value:", "phase:"}) {
      if (part.rfind(field, 0) != 0) continue;
      word.field = field;
      part.erase(0, word.field.size());
      break;
    }
    word.text = part;
    words.push_back(word);
  }
  return words;
}

bool matches(const GraphModel& model, const snapshot::Node& node, const Word& word) {
  const auto values = [&] {
    return std::any_of(node.outputs().begin(), node.outputs().end(), [&](int id) {
      const snapshot::Value* value = model.snapshot().value(id);
      return value != nullptr && contains(value->name(), word.text);
    });
  };
  if (word.field == "op:") return contains(node.op(), word.text);
  if (word.field == "name:") return contains(node.name(), word.text);
  if (word.field == "path:") return contains(node.provenance().module_path(), word.text);
  if (word.field == "phase:") return contains(phaseName(node.phase()), word.text);
  if (word.field == "value:") return values();
  return contains(node.op(), word.text) || contains(node.name(), word.text) ||
         contains(node.provenance().module_path(), word.text) || values();
}

}  // namespace

std::vector<int> searchGraph(const GraphModel& model, const std::string& query) {
  std::vector<int> found;
  const std::vector<Word> words = wordsOf(query);
  if (words.empty()) return found;
  for (int i = 0; i < model.size(); ++i) {
    const snapshot::Node* node = model.node(i);
    if (node != nullptr &&
        std::all_of(words.begin(), words.end(), [&](const Word& w) { return matches(model, *node, w) != w.exclude; }))
      found.push_back(i);
  }
  return found;
}

std::unordered_set<int> neighboursOf(const GraphModel& model, int node) {
  std::unordered_set<int> set{node};
  const auto [begin, end] = model.inEdges(node);
  for (int e = begin; e < end; ++e) set.insert(model.edges()[static_cast<std::size_t>(e)].from);
  for (const int* e = model.outBegin(node); e != model.outEnd(node); ++e)
    set.insert(model.edges()[static_cast<std::size_t>(*e)].to);
  if (const snapshot::Node* n = model.node(node)) {
    for (const int id : model.snapshot().mirrored(n->id())) {
      if (const int other = model.ofNodeId(id); other >= 0) set.insert(other);
    }
    if (const int forward = model.ofNodeId(model.snapshot().forwardOf(n->id())); forward >= 0) set.insert(forward);
  }
  return set;
}

std::unordered_set<int> pathToLoss(const GraphModel& model, int node) {
  const int lossNode = model.ofNodeId(model.snapshot().producer(model.snapshot().graph().loss()));
  if (lossNode < 0) return {};
  const auto reach = [&](int from, bool along) {
    std::unordered_set<int> seen{from};
    std::vector<int> stack{from};
    while (!stack.empty()) {
      const int at = stack.back();
      stack.pop_back();
      const auto visit = [&](int next) {
        if (seen.insert(next).second) stack.push_back(next);
      };
      if (along) {
        for (const int* e = model.outBegin(at); e != model.outEnd(at); ++e)
          visit(model.edges()[static_cast<std::size_t>(*e)].to);
      } else {
        const auto [begin, end] = model.inEdges(at);
        for (int e = begin; e < end; ++e) visit(model.edges()[static_cast<std::size_t>(e)].from);
      }
    }
    return seen;
  };
  // Forward: what the node reaches and what reaches the loss. Gradient: the flow from the loss's own gradient down to the
  // node.
  const bool forward = model.phase(node) == snapshot::FORWARD;
  const std::unordered_set<int> a = forward ? reach(node, true) : reach(node, false);
  std::unordered_set<int> both;
  if (forward) {
    const std::unordered_set<int> b = reach(lossNode, false);
    for (const int i : a) {
      if (b.contains(i)) both.insert(i);
    }
  } else {
    for (const int i : a) {
      if (model.phase(i) == snapshot::BACKWARD || i == node) both.insert(i);
    }
  }
  return both;
}

}  // namespace stepscope
