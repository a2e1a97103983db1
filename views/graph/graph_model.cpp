// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_model.h"

#include <algorithm>
#include <charconv>
#include <functional>

namespace stepscope {
namespace {

constexpr int kMaxDepth = 24;
constexpr int kSmallGroup = 4;         // forward nodes that need no box of their own
constexpr int kMaxAside = 4;           // shape-only nodes beside one consumer; more are laid out like any other node
constexpr std::size_t kMaxPath = 512;  // bytes of a module path that are used

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 33);
}

bool isShapeSource(const std::string& op) { return op == "Shape" || op == "Size"; }

int numberOf(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  const char* begin = path.data() + (dot == std::string::npos ? 0 : dot + 1);
  const char* end = path.data() + path.size();
  int number = -1;
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end && begin != end && number >= 0 ? number : -1;
}

}  // namespace

std::shared_ptr<const GraphModel> GraphModel::make(std::shared_ptr<const GraphSnapshot> snapshot,
                                                   const std::atomic<bool>& cancel) {
  auto model = std::make_shared<GraphModel>();
  model->snapshot_ = std::move(snapshot);
  for (void (GraphModel::*step)() : {&GraphModel::readNodes, &GraphModel::readCategories, &GraphModel::readEdges,
                                     &GraphModel::findAnchors, &GraphModel::findLanes, &GraphModel::settleGroups}) {
    if (cancel) return nullptr;
    (model.get()->*step)();
  }
  return cancel ? nullptr : model;
}

int GraphModel::groupOf(const std::string& path) {
  const auto found = groupByPath_.find(path);
  if (found != groupByPath_.end()) return found->second;
  const std::size_t dot = path.rfind('.');
  const int parent = dot == std::string::npos ? 0 : groupOf(path.substr(0, dot));
  const int index = static_cast<int>(groups_.size());
  ModelGroup group;
  group.path = path;
  group.parent = parent;
  group.number = numberOf(path);
  groups_.push_back(std::move(group));
  groups_[static_cast<std::size_t>(parent)].children.push_back(index);
  groupByPath_.emplace(path, index);
  return index;
}

void GraphModel::readNodes() {
  const snapshot::Graph& graph = snapshot_->graph();
  groups_.emplace_back();
  groupByPath_.emplace("", 0);
  for (int i = 0; i < graph.values_size(); ++i) {
    if (graph.values(i).role() != snapshot::INPUT || snapshot_->consumers(graph.values(i).id()).empty()) continue;
    ModelNode node;
    node.inputValue = i;
    node.anchor = inputs_++;
    nodes_.push_back(node);
  }
  nodes_.reserve(nodes_.size() + static_cast<std::size_t>(graph.nodes_size()));
  for (int i = 0; i < graph.nodes_size(); ++i) {
    const snapshot::Node& from = graph.nodes(i);
    ModelNode node;
    node.graphNode = i;
    if (from.phase() == snapshot::FORWARD) node.anchor = static_cast<int>(nodes_.size());
    node.lane = from.phase() == snapshot::FORWARD     ? Lane::kForward
                : from.phase() == snapshot::OPTIMIZER ? Lane::kOptimizer
                                                      : Lane::kGradient;
    const std::string& path = from.provenance().module_path();
    if (path.size() > kMaxPath || std::count(path.begin(), path.end(), '.') >= kMaxDepth) {
      std::size_t cut = 0;
      for (int depth = 0; depth < kMaxDepth && cut != std::string::npos && cut < kMaxPath; ++depth)
        cut = path.find('.', cut + 1);
      node.group = groupOf(path.substr(0, std::min({cut, kMaxPath, path.size()})));
    } else {
      node.group = groupOf(path);
    }
    nodes_.push_back(node);
  }
}

void GraphModel::readCategories() {
  std::unordered_map<std::string, std::uint8_t> known;
  categories_.emplace_back("other");
  for (int i = inputs_; i < size(); ++i) {
    const snapshot::Node* from = node(i);
    if (from->phase() == snapshot::BACKWARD) {
      if (const snapshot::Node* forward = snapshot_->node(snapshot_->forwardOf(from->id()))) from = forward;
    }
    const auto found = known.find(from->category());
    if (found != known.end()) {
      nodes_[static_cast<std::size_t>(i)].category = found->second;
      continue;
    }
    if (categories_.size() >= 255) continue;
    nodes_[static_cast<std::size_t>(i)].category = static_cast<std::uint8_t>(categories_.size());
    known.emplace(from->category(), static_cast<std::uint8_t>(categories_.size()));
    categories_.push_back(from->category());
  }
}

void GraphModel::readEdges() {
  const snapshot::Graph& graph = snapshot_->graph();
  std::unordered_map<int, int> inputOfValue;
  for (int i = 0; i < inputs_; ++i)
    inputOfValue.emplace(graph.values(nodes_[static_cast<std::size_t>(i)].inputValue).id(), i);
  inStart_.assign(nodes_.size() + 1, 0);
  outStart_.assign(nodes_.size() + 1, 0);
  edges_.reserve(nodes_.size() * 2);
  for (int to = inputs_; to < size(); ++to) {
    inStart_[static_cast<std::size_t>(to)] = static_cast<int>(edges_.size());
    for (const int value : graph.nodes(to - inputs_).inputs()) {
      if (value < 0) continue;
      int from = -1;
      if (const int producer = snapshot_->producer(value); producer >= 0) {
        const int position = snapshot_->nodePosition(producer);
        if (position >= 0) from = position + inputs_;
      } else if (const auto input = inputOfValue.find(value); input != inputOfValue.end()) {
        from = input->second;
      }
      if (from < 0 || from == to) continue;
      edges_.push_back({from, to, snapshot_->valuePosition(value)});
      ++outStart_[static_cast<std::size_t>(from) + 1];
    }
  }
  inStart_[nodes_.size()] = static_cast<int>(edges_.size());
  for (std::size_t i = 1; i < outStart_.size(); ++i) outStart_[i] += outStart_[i - 1];
  out_.resize(edges_.size());
  std::vector<int> fill(outStart_.begin(), outStart_.end() - 1);
  for (std::size_t e = 0; e < edges_.size(); ++e)
    out_[static_cast<std::size_t>(fill[static_cast<std::size_t>(edges_[e].from)]++)] = static_cast<int>(e);
}

void GraphModel::findAnchors() {
  const snapshot::Graph& graph = snapshot_->graph();
  const auto at = [&](int i) -> ModelNode& { return nodes_[static_cast<std::size_t>(i)]; };
  const auto isForward = [&](int i) { return at(i).lane == Lane::kForward; };
  for (int i = inputs_; i < size(); ++i) {
    if (isForward(i)) continue;
    const snapshot::Node& node = graph.nodes(i - inputs_);
    // A gradient of a gradient node, or of a recomputed one, names another gradient node first.
    int forward = node.provenance().forward();
    for (int hop = 0; hop < 4 && forward >= 0; ++hop) {
      const int position = snapshot_->nodePosition(forward);
      if (position < 0) break;
      if (isForward(position + inputs_)) {
        at(i).anchor = position + inputs_;
        break;
      }
      forward = graph.nodes(position).provenance().forward();
    }
    if (node.phase() != snapshot::OPTIMIZER || at(i).anchor >= 0) continue;
    for (const int value : node.inputs()) {
      const int position = value < 0 ? -1 : snapshot_->valuePosition(value);
      if (position < 0 || graph.values(position).role() != snapshot::INITIALIZER) continue;
      for (const int consumer : snapshot_->consumers(value)) {
        const int reader = ofNodeId(consumer);
        if (reader < 0 || !isForward(reader)) continue;
        at(i).anchor = reader;
        break;
      }
      if (at(i).anchor >= 0) break;
    }
  }
  for (int i = inputs_; i < size(); ++i) {
    if (at(i).anchor >= 0) continue;
    const auto [begin, end] = inEdges(i);
    int earliest = -1;
    bool several = false;
    for (int e = begin; e < end; ++e) {
      const int from = edges_[static_cast<std::size_t>(e)].from;
      if (from >= i || isForward(from) || at(from).anchor < 0) continue;
      several |= earliest >= 0 && earliest != at(from).anchor;
      earliest = earliest < 0 ? at(from).anchor : std::min(earliest, at(from).anchor);
    }
    // What the optimizer computes of all parameters together (a global norm) belongs to no place.
    if (at(i).lane == Lane::kOptimizer && several) earliest = -1;
    at(i).anchor = earliest;
  }
  for (int i = size() - 1; i >= inputs_; --i) {
    if (at(i).anchor >= 0) continue;
    int latest = -1;
    bool several = false;
    for (const int* e = outBegin(i); e != outEnd(i); ++e) {
      const int to = edges_[static_cast<std::size_t>(*e)].to;
      if (to <= i || at(to).anchor < 0) continue;
      several |= latest >= 0 && latest != at(to).anchor;
      latest = std::max(latest, at(to).anchor);
    }
    if (at(i).lane == Lane::kOptimizer && several) latest = -1;
    at(i).anchor = latest;
  }
}

void GraphModel::findLanes() {
  const auto at = [&](int i) -> ModelNode& { return nodes_[static_cast<std::size_t>(i)]; };
  // Backwards, so that consumers are known: a weight gradient is read by the optimizer, by another step of the same weight's
  // gradient, or by nobody.
  for (int i = size() - 1; i >= inputs_; --i) {
    if (at(i).lane != Lane::kGradient || phase(i) != snapshot::BACKWARD) continue;
    const bool weight = std::all_of(outBegin(i), outEnd(i), [&](int e) {
      const int to = edges_[static_cast<std::size_t>(e)].to;
      return to > i && (at(to).lane == Lane::kOptimizer || (at(to).lane == Lane::kWeight && at(to).anchor == at(i).anchor));
    });
    if (weight) at(i).lane = Lane::kWeight;
  }
  std::vector<char> aside(nodes_.size(), 0);
  for (int i = inputs_; i < size(); ++i) {
    if (at(i).lane != Lane::kForward || outBegin(i) == outEnd(i)) continue;
    const auto [begin, end] = inEdges(i);
    aside[static_cast<std::size_t>(i)] =
        isShapeSource(node(i)->op()) || std::all_of(edges_.begin() + begin, edges_.begin() + end, [&](const ModelEdge& e) {
          return e.from < i && aside[static_cast<std::size_t>(e.from)] != 0;
        });
  }
  std::vector<int> host(nodes_.size(), -1), guests(nodes_.size(), 0);
  for (int i = size() - 1; i >= inputs_; --i) {
    if (aside[static_cast<std::size_t>(i)] == 0) continue;
    int first = -1;
    for (const int* e = outBegin(i); e != outEnd(i); ++e) {
      const int to = edges_[static_cast<std::size_t>(*e)].to;
      if (to > i && phase(to) == snapshot::FORWARD && (first < 0 || to < first)) first = to;
    }
    if (first < 0) continue;
    host[static_cast<std::size_t>(i)] =
        aside[static_cast<std::size_t>(first)] != 0 ? host[static_cast<std::size_t>(first)] : first;
    if (const int h = host[static_cast<std::size_t>(i)]; h >= 0) ++guests[static_cast<std::size_t>(h)];
  }
  for (int i = inputs_; i < size(); ++i) {
    const int h = host[static_cast<std::size_t>(i)];
    if (h < 0 || guests[static_cast<std::size_t>(h)] > kMaxAside) continue;
    at(i).lane = Lane::kAside;
    at(i).anchor = h;
  }
  // Whoever is anchored stands in the group of the anchor, so that both columns of a group hold the same things.
  for (int i = inputs_; i < size(); ++i) {
    if (at(i).anchor < 0 || at(i).anchor == i) continue;
    int anchor = at(i).anchor;
    if (at(anchor).lane == Lane::kAside) anchor = at(anchor).anchor;
    at(i).anchor = anchor;
    at(i).group = at(anchor).group;
  }
  // An input that no forward node reads (a learning rate) stands beside the first node that does.
  for (int i = 0; i < inputs_; ++i) {
    int first = size();
    for (const int* e = outBegin(i); e != outEnd(i); ++e) first = std::min(first, edges_[static_cast<std::size_t>(*e)].to);
    const bool forward = std::any_of(
        outBegin(i), outEnd(i), [&](int e) { return phase(edges_[static_cast<std::size_t>(e)].to) == snapshot::FORWARD; });
    if (forward || first == size()) continue;
    at(i).lane = at(first).lane;
    at(i).anchor = at(first).anchor;
    at(i).group = at(first).group;
  }
}

void GraphModel::settleGroups() {
  const std::size_t count = groups_.size();
  std::vector<std::uint64_t> name(count, 0);
  for (std::size_t g = 1; g < count; ++g) {
    const std::string& path = groups_[g].path;
    const std::size_t dot = path.rfind('.');
    name[g] = std::hash<std::string_view>()(std::string_view(path).substr(dot == std::string::npos ? 0 : dot + 1));
  }
  std::vector<int> first(count, size());
  for (int i = 0; i < size(); ++i) {
    std::uint64_t content = 1;
    if (const snapshot::Node* n = node(i)) {
      content = mix(std::hash<std::string>()(n->op()),
                    static_cast<std::uint64_t>(n->inputs_size()) * 8 + static_cast<std::uint64_t>(n->phase()));
      const snapshot::Value* out = n->outputs_size() > 0 ? snapshot_->value(n->outputs(0)) : nullptr;
      content = mix(content, out != nullptr ? static_cast<std::uint64_t>(out->bytes()) : 0);
    }
    const bool forward = phase(i) == snapshot::FORWARD;
    std::uint64_t relative = 0;
    for (int g = nodes_[static_cast<std::size_t>(i)].group; g >= 0; g = groups_[static_cast<std::size_t>(g)].parent) {
      ModelGroup& group = groups_[static_cast<std::size_t>(g)];
      ++(forward ? group.forwardNodes : group.gradientNodes);
      group.structure = mix(group.structure, mix(content, relative));
      first[static_cast<std::size_t>(g)] = std::min(first[static_cast<std::size_t>(g)], i);
      relative = mix(relative, name[static_cast<std::size_t>(g)]);
    }
  }
  for (std::size_t g = 0; g < count; ++g) {
    ModelGroup& group = groups_[g];
    std::sort(group.children.begin(), group.children.end(), [&](int a, int b) {
      const ModelGroup &x = groups_[static_cast<std::size_t>(a)], &y = groups_[static_cast<std::size_t>(b)];
      if (x.number != y.number && x.number >= 0 && y.number >= 0) return x.number < y.number;
      return std::pair(first[static_cast<std::size_t>(a)], a) < std::pair(first[static_cast<std::size_t>(b)], b);
    });
    int below = 0;
    bool numbered = group.children.size() > 1;
    for (const int c : group.children) {
      below += groups_[static_cast<std::size_t>(c)].forwardNodes;
      numbered &= groups_[static_cast<std::size_t>(c)].number >= 0;
    }
    const bool wrapper = group.number < 0 && !group.children.empty() && 2 * group.forwardNodes > groups_[0].forwardNodes;
    group.transparent = g == 0 || group.forwardNodes <= kSmallGroup || (numbered && below == group.forwardNodes) || wrapper;
  }
}

int GraphModel::ofNodeId(int nodeId) const {
  const int position = snapshot_->nodePosition(nodeId);
  return position < 0 ? -1 : position + inputs_;
}

const snapshot::Node* GraphModel::node(int modelNode) const {
  return modelNode < inputs_ ? nullptr : &snapshot_->graph().nodes(modelNode - inputs_);
}

const snapshot::Value* GraphModel::value(int valuePosition) const {
  return valuePosition < 0 ? nullptr : &snapshot_->graph().values(valuePosition);
}

snapshot::Phase GraphModel::phase(int modelNode) const {
  if (modelNode >= inputs_) return node(modelNode)->phase();
  const Lane lane = nodes_[static_cast<std::size_t>(modelNode)].lane;
  return isForward(lane) ? snapshot::FORWARD : lane == Lane::kOptimizer ? snapshot::OPTIMIZER : snapshot::BACKWARD;
}

int GraphModel::group(const std::string& path) const {
  const auto found = groupByPath_.find(path);
  return found == groupByPath_.end() ? -1 : found->second;
}

}  // namespace stepscope
