// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/scene_builder.h"

#include <algorithm>

namespace stepscope {
namespace {

class SceneBuilder {
 public:
  SceneBuilder(LayoutState& state, GraphScene& scene) : state_(state), scene_(scene) {}

  void boxes() {
    GraphScene& scene = scene_;
    const Extent& root = state_.extents[0];
    for (auto& boxes : closedBox_) boxes.assign(state_.items.items.size(), -1);
    scene.boxOfNode.assign(static_cast<std::size_t>(state_.model.size()), -1);
    put(0, 0, root.width[0] + kGutter, 0);
    const float width = root.width[1] > 0 ? root.width[0] + kGutter + root.width[1] : root.width[0];
    scene.bounds = {0, 0, std::max(1.0F, width), std::max(1.0F, root.height)};
    scene.columnGap = root.width[1] > 0 ? root.width[0] + kGutter / 2 : 0;
    for (int i = 0; i < state_.model.size(); ++i) {
      int& box = scene.boxOfNode[static_cast<std::size_t>(i)];
      if (box >= 0) continue;
      const auto m = static_cast<std::size_t>(state_.items.ofNode[static_cast<std::size_t>(i)]);
      const int column = state_.model.phase(i) == snapshot::FORWARD ? 0 : 1;
      box = closedBox_[column][m];
    }
    std::vector<BoxF> leaves;
    leaves.reserve(scene.boxes.size());
    for (const SceneBox& b : scene.boxes) leaves.push_back(b.kind == BoxKind::kOpenGroup ? BoxF{0, 0, -1, -1} : b.at);
    scene.leaves.build(std::move(leaves), 400, 240);
  }

  // One edge between each two boxes, however many values go that way.
  void edges() {
    GraphScene& scene = scene_;
    struct Link {
      std::uint64_t key;
      int value;
      bool operator<(const Link& o) const { return key != o.key ? key < o.key : value < o.value; }
      bool operator==(const Link&) const = default;
    };
    std::vector<Link> links;
    links.reserve(state_.model.edges().size());
    for (const ModelEdge& e : state_.model.edges()) {
      const int a = scene.boxOfNode[static_cast<std::size_t>(e.from)], b = scene.boxOfNode[static_cast<std::size_t>(e.to)];
      if (a >= 0 && b >= 0 && a != b)
        links.push_back({static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint64_t>(b), e.value});
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    scene.edgeStart.assign(scene.boxes.size() + 1, 0);
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (i > 0 && links[i].key == links[i - 1].key) {
        ++scene.edges.back().values;
        continue;
      }
      SceneEdge edge;
      edge.from = static_cast<int>(links[i].key >> 32);
      edge.to = static_cast<int>(links[i].key & 0xffffffffU);
      edge.value = links[i].value;
      scene.edges.push_back(edge);
      ++scene.edgeStart[static_cast<std::size_t>(edge.from) + 1];
      ++scene.edgeStart[static_cast<std::size_t>(edge.to) + 1];
    }
    for (std::size_t i = 1; i < scene.edgeStart.size(); ++i) scene.edgeStart[i] += scene.edgeStart[i - 1];
    scene.edgesOfBox.resize(scene.edges.size() * 2);
    std::vector<int> fill(scene.edgeStart.begin(), scene.edgeStart.end() - 1);
    for (std::size_t e = 0; e < scene.edges.size(); ++e) {
      for (const int b : {scene.edges[e].from, scene.edges[e].to}) {
        scene.edgesOfBox[static_cast<std::size_t>(fill[static_cast<std::size_t>(b)]++)] = static_cast<int>(e);
      }
    }
  }

 private:
  int push(SceneBox box) {
    scene_.boxes.push_back(box);
    return static_cast<int>(scene_.boxes.size()) - 1;
  }

  void putStack(const std::vector<int>& nodes, Lane lane, int levels, float centre, float left, float rowTop,
                float rowHeight) {
    if (nodes.empty()) return;
    const float width = lane == Lane::kGradient ? kNodeWidth : kSmallWidth;
    for (const int n : nodes) levels = std::max(levels, state_.level[static_cast<std::size_t>(n)] + 1);
    std::vector<int> count(static_cast<std::size_t>(levels), 0), used(static_cast<std::size_t>(levels), 0);
    for (const int n : nodes) ++count[static_cast<std::size_t>(state_.level[static_cast<std::size_t>(n)])];
    const float bottom = rowTop + (rowHeight + state_.stackHeight(levels, lane)) / 2;
    for (const int n : nodes) {
      const auto level = static_cast<std::size_t>(state_.level[static_cast<std::size_t>(n)]);
      const float span = static_cast<float>(count[level]) * (width + kSideGap) - kSideGap;
      const float x =
          (lane == Lane::kGradient ? centre - span / 2 : left) + static_cast<float>(used[level]++) * (width + kSideGap);
      const float y = bottom - kNodeHeight - static_cast<float>(level) * state_.pitchOf(lane);
      SceneBox box;
      const bool input = state_.node(n).inputValue >= 0;
      const float boxHeight = input ? kInputHeight : kNodeHeight;
      box.kind = input ? BoxKind::kInput : BoxKind::kNode;
      box.at = {x, y + (kNodeHeight - boxHeight) / 2, width, boxHeight};
      box.lane = lane;
      box.gradient = true;
      box.node = n;
      scene_.boxOfNode[static_cast<std::size_t>(n)] = push(box);
    }
  }

  void put(int group, float x0, float x1, float y0) {
    const Extent& extent = state_.extents[static_cast<std::size_t>(group)];
    const float x[2] = {x0, x1};
    for (const int m : state_.items.members[static_cast<std::size_t>(group)]) {
      const LayoutItem& i = state_.item(m);
      const Spot& s = state_.spot(m);
      const float top = y0 + extent.rowY[static_cast<std::size_t>(s.rank)],
                  height = extent.rowHeight[static_cast<std::size_t>(s.rank)];
      const float y = top + (height - s.height) / 2;
      if (i.kind == ItemKind::kOpen || i.kind == ItemKind::kClosed) {
        SceneBox box;
        box.kind = i.kind == ItemKind::kOpen ? BoxKind::kOpenGroup : BoxKind::kClosedGroup;
        box.group = i.group;
        box.folded = i.folded;
        for (int c = 0; c < 2; ++c) {
          if (!s.in[c]) continue;
          box.at = {x[c] + s.x[c] - s.left[c], y, s.left[c] + s.right[c], s.height};
          box.gradient = c == 1;
          box.lane = c == 1 ? Lane::kGradient : Lane::kForward;
          const int index = push(box);
          if (box.kind == BoxKind::kOpenGroup) {
            scene_.openGroups.push_back(index);
          } else {
            closedBox_[c][static_cast<std::size_t>(m)] = index;
          }
        }
        if (i.kind == ItemKind::kOpen) put(i.group, x0 + s.x[0] - s.left[0], x1 + s.x[1] - s.left[1], y);
        continue;
      }
      if (i.kind == ItemKind::kLeaf) {
        SceneBox box;
        const bool input = state_.node(i.node).inputValue >= 0;
        const float width = input ? kInputWidth : kNodeWidth, boxHeight = input ? kInputHeight : kNodeHeight;
        const float cx = x0 + s.x[0], cy = top + height / 2;
        box.kind = input ? BoxKind::kInput : BoxKind::kNode;
        box.node = i.node;
        box.at = {cx - width / 2, cy - boxHeight / 2, width, boxHeight};
        scene_.boxOfNode[static_cast<std::size_t>(i.node)] = push(box);
        box.kind = BoxKind::kNode;
        box.lane = Lane::kAside;
        const std::vector<int>& aside = state_.stack(i, Lane::kAside);
        for (std::size_t k = 0; k < aside.size(); ++k) {
          box.node = aside[k];
          box.at = {cx - kNodeWidth / 2 - static_cast<float>(aside.size() - k) * (kSmallWidth + kSideGap),
                    cy - kNodeHeight / 2, kSmallWidth, kNodeHeight};
          scene_.boxOfNode[static_cast<std::size_t>(aside[k])] = push(box);
        }
      }
      // Both side lanes count the same levels, so that a weight gradient and its update are level.
      const int side = state_.levels[static_cast<std::size_t>(m)];
      putStack(state_.stack(i, Lane::kGradient), Lane::kGradient, 0, x1 + s.x[1], 0, top, height);
      putStack(state_.stack(i, Lane::kWeight), Lane::kWeight, side, 0, x1 + s.weightX, top, height);
      putStack(state_.stack(i, Lane::kOptimizer), Lane::kOptimizer, side, 0, x1 + s.optimizerX, top, height);
    }
  }

  LayoutState& state_;
  GraphScene& scene_;
  std::vector<int> closedBox_[2];  // by item, per column
};

}  // namespace

void buildScene(LayoutState& state, GraphScene& scene) {
  SceneBuilder builder(state, scene);
  builder.boxes();
  builder.edges();
}

}  // namespace stepscope
