// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/layout.h"

#include <algorithm>

#include "views/graph/edge_router.h"
#include "views/graph/row_order.h"
#include "views/graph/scene_builder.h"

namespace stepscope {
namespace {

constexpr std::size_t kWidest = 4;  // nodes of one anchor beside each other before they wrap

// Ids of nodes; those of inputs, which are values, below 0.
int seedKey(const GraphModel& model, int modelNode) {
  if (const snapshot::Node* node = model.node(modelNode)) return node->id();
  return -1 - model.value(model.nodes()[static_cast<std::size_t>(modelNode)].inputValue)->id();
}

class Layouter {
 public:
  Layouter(const std::shared_ptr<const GraphModel>& model, const OpenGroups& open, const NodeSeeds& seeds,
           const std::atomic<bool>& cancel)
      : state_(*model, open), seeds_(seeds), cancel_(cancel), scene_(std::make_shared<GraphScene>()) {
    scene_->model = model;
  }

  std::shared_ptr<GraphScene> run() {
    collectEdges();
    if (cancel_) return nullptr;
    place(0);
    if (cancel_) return nullptr;
    buildScene(state_, *scene_);
    if (cancel_) return nullptr;
    routeEdges(*scene_, cancel_);
    return cancel_ ? nullptr : scene_;
  }

 private:
  using Pairs = std::vector<std::pair<int, int>>;

  void collectEdges() {
    for (auto& pairs : pairs_) pairs.resize(state_.model.groups().size());
    for (const ModelEdge& edge : state_.model.edges()) {
      const Lane from = state_.node(edge.from).lane, to = state_.node(edge.to).lane;
      if (from != to || (from != Lane::kForward && from != Lane::kGradient) || edge.from >= edge.to) continue;
      const auto [a, b] = state_.items.common(edge.from, edge.to);
      if (a != b)
        pairs_[from == Lane::kGradient ? 1 : 0][static_cast<std::size_t>(state_.item(a).container)].emplace_back(
            state_.item(a).local, state_.item(b).local);
    }
  }

  // Levels of the nodes of one anchor and lane: a node stands above those it reads.
  // An optimizer node stands level with the weight gradient it reads, so `number` is that of the stacks before it; inputs
  // stand above what reads them there, so that it stays so.
  int arrange(const std::vector<int>& nodes, std::size_t widest, float nodeWidth, float* width, bool beside = false) {
    *width = 0;
    if (nodes.empty()) return 0;
    stackOf_.resize(state_.level.size(), -1);
    if (!beside) ++stackNumber_;
    std::vector<std::size_t> count;
    std::vector<int> order = nodes;
    const auto above = [this](int n) { return state_.node(n).inputValue >= 0 && state_.node(n).lane != Lane::kGradient; };
    std::stable_partition(order.begin(), order.end(), [&above](int n) { return !above(n); });
    for (const int n : order) {
      int level = 0;
      for (const int* e = state_.model.outBegin(n); above(n) && e != state_.model.outEnd(n); ++e) {
        const auto reader = static_cast<std::size_t>(state_.model.edges()[static_cast<std::size_t>(*e)].to);
        if (stackOf_[reader] == stackNumber_) level = std::max(level, state_.level[reader] + 1);
      }
      const auto [begin, end] = state_.model.inEdges(n);
      for (int e = begin; e < end; ++e) {
        const int from = state_.model.edges()[static_cast<std::size_t>(e)].from;
        if (from >= n || stackOf_[static_cast<std::size_t>(from)] != stackNumber_) continue;
        const int step = beside && state_.node(from).lane == Lane::kWeight ? 0 : 1;
        level = std::max(level, state_.level[static_cast<std::size_t>(from)] + step);
      }
      while (static_cast<std::size_t>(level) < count.size() && count[static_cast<std::size_t>(level)] >= widest) ++level;
      if (count.size() <= static_cast<std::size_t>(level)) count.resize(static_cast<std::size_t>(level) + 1, 0);
      ++count[static_cast<std::size_t>(level)];
      state_.level[static_cast<std::size_t>(n)] = level;
      stackOf_[static_cast<std::size_t>(n)] = stackNumber_;
    }
    const auto most = static_cast<float>(*std::max_element(count.begin(), count.end()));
    *width = most * (nodeWidth + kSideGap) - kSideGap;
    return static_cast<int>(count.size());
  }

  void measure(int index) {
    const LayoutItem& i = state_.item(index);
    Spot& s = state_.spot(index);
    float weightWidth = 0, optimizerWidth = 0, mainWidth = 0;
    switch (i.kind) {
      case ItemKind::kLeaf:
      case ItemKind::kLoose: {
        const std::size_t widest = i.kind == ItemKind::kLoose ? 2 * kWidest : kWidest;
        const int main = arrange(state_.stack(i, Lane::kGradient), widest, kNodeWidth, &mainWidth);
        const std::size_t beside = i.kind == ItemKind::kLoose ? widest : 1;
        const int weight = arrange(state_.stack(i, Lane::kWeight), beside, kSmallWidth, &weightWidth);
        const int optimizer = arrange(state_.stack(i, Lane::kOptimizer), beside, kSmallWidth, &optimizerWidth, weight > 0);
        s.in[0] = i.kind == ItemKind::kLeaf;
        if (s.in[0]) {
          const bool input = state_.node(i.node).inputValue >= 0;
          s.left[0] = s.right[0] = (input ? kInputWidth : kNodeWidth) / 2;
          s.left[0] += static_cast<float>(state_.stack(i, Lane::kAside).size()) * (kSmallWidth + kSideGap);
        }
        s.in[1] = main + weight + optimizer > 0;
        s.left[1] = s.right[1] = mainWidth / 2;
        s.height = std::max({s.in[0] ? kNodeHeight : 0.0F, state_.stackHeight(main, Lane::kGradient),
                             state_.stackHeight(weight, Lane::kWeight), state_.stackHeight(optimizer, Lane::kOptimizer)});
        state_.levels[static_cast<std::size_t>(index)] = std::max(weight, optimizer);
        state_.laneWidth[0][static_cast<std::size_t>(index)] = weightWidth;
        state_.laneWidth[1][static_cast<std::size_t>(index)] = optimizerWidth;
        break;
      }
      case ItemKind::kClosed: {
        const ModelGroup& group = state_.model.groups()[static_cast<std::size_t>(i.group)];
        for (int c = 0; c < 2; ++c) {
          s.in[c] = (c == 0 ? group.forwardNodes : group.gradientNodes) > 0;
          if (s.in[c]) s.left[c] = s.right[c] = (i.folded > 1 ? kFoldedWidth : kClosedWidth) / 2;
        }
        s.height = i.folded > 1 ? kFoldedHeight : kClosedHeight;
        break;
      }
      case ItemKind::kOpen: {
        const Extent& inner = state_.extents[static_cast<std::size_t>(i.group)];
        for (int c = 0; c < 2; ++c) {
          s.in[c] = inner.width[c] > 0;
          if (s.in[c]) {
            s.left[c] = inner.spine[c];
            s.right[c] = inner.width[c] - inner.spine[c];
          }
        }
        s.height = inner.height;
        break;
      }
    }
  }

  void place(int group) {
    if (cancel_) return;
    const std::vector<int>& members = state_.items.members[static_cast<std::size_t>(group)];
    for (const int m : members) {
      if (state_.item(m).kind == ItemKind::kOpen) place(state_.item(m).group);
    }
    if (cancel_) return;
    for (const int m : members) measure(m);

    const std::size_t count = members.size();
    Adjacency in(count, pairs_[0][static_cast<std::size_t>(group)], true),
        out(count, pairs_[0][static_cast<std::size_t>(group)], false);
    rankItems(state_, members, in, out);
    int last = 0;
    for (const int m : members) last = std::max(last, state_.spot(m).rank);
    std::vector<std::vector<int>> rows(static_cast<std::size_t>(last) + 1);
    for (std::size_t i = 0; i < count; ++i)
      rows[static_cast<std::size_t>(state_.spot(members[i]).rank)].push_back(static_cast<int>(i));

    for (const int m : members) state_.spot(m).x[0] = seedOf(state_.item(m));
    orderRows(state_, members, rows, in, out, 0, cancel_);
    for (const int m : members) state_.spot(m).x[1] = state_.spot(m).x[0];
    Adjacency gradientIn(count, pairs_[1][static_cast<std::size_t>(group)], true),
        gradientOut(count, pairs_[1][static_cast<std::size_t>(group)], false);
    orderRows(state_, members, rows, gradientIn, gradientOut, 1, cancel_);
    settle(group, members, rows);
  }

  float seedOf(const LayoutItem& i) const {
    if (seeds_.empty() || i.node < 0) return 0;
    const auto found = seeds_.find(seedKey(state_.model, i.node));
    return found == seeds_.end() ? 0 : found->second;
  }

  // Heights of rows, the two lanes beside the gradient, and the size of the whole.
  void settle(int group, const std::vector<int>& members, const std::vector<std::vector<int>>& rows) {
    Extent& extent = state_.extents[static_cast<std::size_t>(group)];
    const bool root = group == 0;
    float left[2] = {0, 0}, right[2] = {0, 0};
    bool any[2] = {false, false};
    for (const int m : members) {
      const Spot& s = state_.spot(m);
      for (int c = 0; c < 2; ++c) {
        if (!s.in[c]) continue;
        left[c] = any[c] ? std::min(left[c], s.x[c] - s.left[c]) : s.x[c] - s.left[c];
        any[c] = true;
      }
    }
    const float padLeft = root ? 0 : kPadLeft, padRight[2] = {root                         ? 0
                                                              : state_.model.hasGradient() ? kPadStubs
                                                                                           : kPadRight,
                                                              root ? 0 : kPadRight};
    for (const int m : members) {
      for (int c = 0; c < 2; ++c) {
        if (state_.spot(m).in[c]) state_.spot(m).x[c] += padLeft - left[c];
      }
    }
    for (int c = 0; c < 2; ++c) {
      std::vector<float> centres;
      for (const int m : members) {
        if (state_.spot(m).in[c] && !state_.isInput(m) && state_.spot(m).left[c] > 0) centres.push_back(state_.spot(m).x[c]);
      }
      if (centres.empty()) continue;
      std::nth_element(centres.begin(), centres.begin() + static_cast<std::ptrdiff_t>(centres.size() / 2), centres.end());
      extent.spine[c] = centres[centres.size() / 2];
    }
    extent.rowY.assign(rows.size(), 0);
    extent.rowHeight.assign(rows.size(), 0);
    std::vector<float> mainRight(rows.size(), 0), laneRight(rows.size(), 0);
    std::vector<char> boxed(rows.size(), 0);
    float y = root ? 0 : kHeader;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const int local : rows[r]) {
        const int m = members[static_cast<std::size_t>(local)];
        const Spot& s = state_.spot(m);
        extent.rowHeight[r] = std::max(extent.rowHeight[r], s.height);
        boxed[r] |= state_.item(m).kind == ItemKind::kOpen || state_.item(m).kind == ItemKind::kClosed;
        if (s.in[0]) right[0] = std::max(right[0], s.x[0] + s.right[0]);
        if (s.in[1]) mainRight[r] = std::max(mainRight[r], s.x[1] + s.right[1]);
      }
      extent.rowY[r] = y;
      y += extent.rowHeight[r] + kRowGap;
    }
    extent.height = y - (rows.empty() ? 0 : kRowGap) + (root ? 0 : kPadBottom);
    // Lanes are straight over neighbouring rows of plain nodes.
    const auto align = [&](std::vector<float>& edge) {
      for (std::size_t r = 0; r < rows.size();) {
        std::size_t end = r + 1;
        while (end < rows.size() && boxed[end] == boxed[r] && boxed[r] == 0) ++end;
        const float most = *std::max_element(edge.begin() + static_cast<std::ptrdiff_t>(r),
                                             edge.begin() + static_cast<std::ptrdiff_t>(end));
        std::fill(edge.begin() + static_cast<std::ptrdiff_t>(r), edge.begin() + static_cast<std::ptrdiff_t>(end), most);
        r = end;
      }
    };
    align(mainRight);
    for (int lane = 0; lane < 2; ++lane) {
      std::vector<float>& from = lane == 0 ? mainRight : laneRight;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        float x = from[r] + (from[r] > 0 ? kLaneGap : padLeft);
        std::vector<int> row;
        for (const int local : rows[r]) row.push_back(members[static_cast<std::size_t>(local)]);
        std::stable_sort(row.begin(), row.end(), [&](int a, int b) { return state_.spot(a).x[1] < state_.spot(b).x[1]; });
        float end = from[r];
        for (const int m : row) {
          const float width = state_.laneWidth[lane][static_cast<std::size_t>(m)];
          if (width <= 0) continue;
          (lane == 0 ? state_.spot(m).weightX : state_.spot(m).optimizerX) = x;
          end = x + width;
          x = end + kSideGap;
        }
        if (lane == 0) laneRight[r] = end;
        right[1] = std::max(right[1], end);
      }
      if (lane == 0) align(laneRight);
    }
    for (int c = 0; c < 2; ++c) {
      if (right[c] > 0) extent.width[c] = right[c] + padRight[c];
    }
  }

  LayoutState state_;
  const NodeSeeds& seeds_;
  const std::atomic<bool>& cancel_;
  std::vector<Pairs> pairs_[2];
  std::vector<int> stackOf_;
  int stackNumber_ = 0;
  std::shared_ptr<GraphScene> scene_;
};

}  // namespace

std::shared_ptr<const GraphScene> layoutGraph(const std::shared_ptr<const GraphModel>& model, const OpenGroups& open,
                                              const NodeSeeds& seeds, const std::atomic<bool>& cancel) {
  return Layouter(model, open, seeds, cancel).run();
}

NodeSeeds seedsOf(const GraphScene& scene) {
  NodeSeeds seeds;
  seeds.reserve(scene.boxes.size());
  for (const SceneBox& box : scene.boxes) {
    if (box.node >= 0 && !box.gradient) seeds.emplace(seedKey(*scene.model, box.node), box.at.centerX());
  }
  return seeds;
}

}  // namespace stepscope
