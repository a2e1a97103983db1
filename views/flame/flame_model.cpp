// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/flame/flame_model.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

namespace stepscope {
namespace {

constexpr int kMaxDepth = 40;

const char* phaseName(int phase) {
  switch (phase) {
    case snapshot::BACKWARD: return "Backward";
    case snapshot::RECOMPUTE: return "Recompute";
    case snapshot::OPTIMIZER: return "Optimizer";
    default: return "Forward";
  }
}

class Builder {
 public:
  Builder() { nodes_.push_back({.name = "all"}); }

  int child(int parent, const std::string& name, const std::string& path) {
    const auto [at, fresh] = children_.emplace(std::pair(parent, name), static_cast<int>(nodes_.size()));
    if (fresh) {
      FlameNode node;
      node.name = name;
      node.path = path;
      node.parent = parent;
      node.depth = nodes_[static_cast<std::size_t>(parent)].depth + 1;
      nodes_.push_back(std::move(node));
    }
    return at->second;
  }

  void add(int leaf, std::int64_t ns) {
    for (int n = leaf; n >= 0; n = nodes_[static_cast<std::size_t>(n)].parent) {
      nodes_[static_cast<std::size_t>(n)].ns += ns;
      ++nodes_[static_cast<std::size_t>(n)].spans;
    }
  }

  FlameNode& at(int i) { return nodes_[static_cast<std::size_t>(i)]; }

  // Children in descending time, parents first; positions in nanoseconds.
  FlameTree finish() {
    FlameTree tree;
    tree.ns = nodes_[0].ns;
    std::vector<std::vector<int>> below(nodes_.size());
    for (std::size_t i = 1; i < nodes_.size(); ++i)
      below[static_cast<std::size_t>(nodes_[i].parent)].push_back(static_cast<int>(i));
    std::vector<std::pair<int, int>> stack{{0, -1}};  // node here, parent there
    while (!stack.empty()) {
      const auto [i, parent] = stack.back();
      stack.pop_back();
      FlameNode node = nodes_[static_cast<std::size_t>(i)];
      node.parent = parent;
      const int index = static_cast<int>(tree.nodes.size());
      tree.nodes.push_back(node);
      std::vector<int>& list = below[static_cast<std::size_t>(i)];
      // Numbered blocks keep their order, so that they can be compared; all else by time.
      const auto numberOf = [&](int n) {
        const std::string& name = nodes_[static_cast<std::size_t>(n)].name;
        int number = -1;
        const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
        return error == std::errc() && stop == name.data() + name.size() ? number : -1;
      };
      const bool numbered = std::all_of(list.begin(), list.end(), [&](int n) { return numberOf(n) >= 0; });
      std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
        return numbered ? numberOf(a) < numberOf(b)
                        : nodes_[static_cast<std::size_t>(a)].ns > nodes_[static_cast<std::size_t>(b)].ns;
      });
      std::int64_t x = nodes_[static_cast<std::size_t>(i)].begin;
      for (const int c : list) {
        nodes_[static_cast<std::size_t>(c)].begin = x;
        x += nodes_[static_cast<std::size_t>(c)].ns;
        stack.emplace_back(c, index);
      }
    }
    return tree;
  }

 private:
  std::vector<FlameNode> nodes_;
  std::map<std::pair<int, std::string>, int> children_;
};

}  // namespace

std::vector<int> FlameTree::nodesBelow(int index) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    int at = static_cast<int>(i);
    while (at > index) at = nodes[static_cast<std::size_t>(at)].parent;  // parents stand before their children
    if (at == index) found.insert(found.end(), nodes[i].nodes.begin(), nodes[i].nodes.end());
  }
  return found;
}

FlameTree FlameTree::make(const std::vector<std::shared_ptr<const snapshot::StepRecord>>& steps, const PlanSnapshot* plan,
                          const GraphSnapshot* graph, std::int64_t begin, std::int64_t end) {
  Builder builder;
  std::unordered_map<int, int> leafOf;  // node id → leaf: paths are split once per node, not once per span
  for (const auto& step : steps) {
    if (!step) continue;
    for (const auto& span : step->spans()) {
      const std::int64_t from = begin < end ? std::max(begin, span.begin_ns()) : span.begin_ns();
      const std::int64_t to = begin < end ? std::min(end, span.end_ns()) : span.end_ns();
      if (to <= from) continue;
      auto found = leafOf.find(span.node());
      if (found == leafOf.end()) {
        const snapshot::Node* node = graph != nullptr ? graph->node(span.node()) : nullptr;
        const snapshot::Instruction* in = plan != nullptr ? plan->instruction(span.instruction()) : nullptr;
        int at = builder.child(0, phaseName(node != nullptr ? node->phase() : in != nullptr ? in->phase() : 0), {});
        std::string path = node != nullptr ? node->provenance().module_path() : std::string();
        if (path.empty() && node != nullptr) {
          if (const snapshot::Node* forward = graph->node(graph->forwardOf(node->id())))
            path = forward->provenance().module_path();
        }
        std::size_t start = 0;
        for (int depth = 0; depth < kMaxDepth && start < path.size(); ++depth) {
          const std::size_t dot = std::min(path.find('.', start), path.size());
          at = builder.child(at, path.substr(start, dot - start), path.substr(0, dot));
          start = dot + 1;
        }
        const std::string op = node != nullptr ? node->op()
                               : in != nullptr ? in->op()
                                               : "instruction " + std::to_string(span.instruction());
        const int leaf = builder.child(at, op, path);
        FlameNode& l = builder.at(leaf);
        if (node != nullptr) {
          const snapshot::Node* forward =
              node->phase() == snapshot::BACKWARD ? graph->node(graph->forwardOf(node->id())) : nullptr;
          l.category = forward != nullptr ? forward->category() : node->category();
          l.node = l.node == -1 ? node->id() : -2;
          l.nodes.push_back(node->id());
        }
        found = leafOf.emplace(span.node(), leaf).first;
      }
      builder.add(found->second, to - from);
    }
  }
  return builder.finish();
}

}  // namespace stepscope
