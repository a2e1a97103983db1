// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "views/graph/edge_router.h"
#include "views/graph/layout_items.h"
#include "views/graph/layout_metrics.h"
#include "views/graph/row_placement.h"

namespace stepscope {
namespace {

constexpr int kSweeps = 6;
constexpr std::size_t kWidest = 4;    // nodes of one anchor beside each other before they wrap
constexpr float kInputPull = 0.002F;  // weight of an edge from an input: it follows its reader, not the other way round
constexpr float kLongPull = 0.1F;     // weight of an edge over several ranks

struct Neighbour {
  int item = 0;
  float weight = 1;
};

// Neighbours of the items of one container, towards lower and higher numbers.
struct Adjacency {
  std::vector<int> start;
  std::vector<Neighbour> list;

  Adjacency(std::size_t count, const std::vector<std::pair<int, int>>& edges, bool incoming) : start(count + 1, 0) {
    for (const auto& [a, b] : edges) ++start[static_cast<std::size_t>(incoming ? b : a) + 1];
    for (std::size_t i = 1; i <= count; ++i) start[i] += start[i - 1];
    list.resize(edges.size());
    std::vector<int> fill(start.begin(), start.end() - 1);
    for (const auto& [a, b] : edges)
      list[static_cast<std::size_t>(fill[static_cast<std::size_t>(incoming ? b : a)]++)].item = incoming ? a : b;
  }
  const Neighbour* begin(int i) const { return list.data() + start[static_cast<std::size_t>(i)]; }
  const Neighbour* end(int i) const { return list.data() + start[static_cast<std::size_t>(i) + 1]; }
  Neighbour* begin(int i) { return list.data() + start[static_cast<std::size_t>(i)]; }
  Neighbour* end(int i) { return list.data() + start[static_cast<std::size_t>(i) + 1]; }
};

// Where an item stands within its container, before the container has a place itself.
struct Spot {
  int rank = 0;
  float x[2] = {0, 0};     // centre, per column
  float left[2] = {0, 0};  // extents from the centre; 0 when it has nothing in the column
  float right[2] = {0, 0};
  bool in[2] = {false, false};
  float height = 0;
  float weightX = 0, optimizerX = 0;  // left edges of the lanes
};

struct Extent {
  float width[2] = {0, 0};
  float height = 0;
  float spine[2] = {0, 0};  // x of the main line of nodes: what other things align with
  std::vector<float> rowY, rowHeight;
};

class Layouter {
 public:
  Layouter(const std::shared_ptr<const GraphModel>& model, const OpenGroups& open, const NodeSeeds& seeds,
           const std::atomic<bool>& cancel)
      : model_(*model), seeds_(seeds), cancel_(cancel), items_(*model, open), scene_(std::make_shared<GraphScene>()) {
    scene_->model = model;
  }

  std::shared_ptr<GraphScene> run() {
    spots_.resize(items_.items.size());
    extents_.resize(model_.groups().size());
    level_.assign(static_cast<std::size_t>(model_.size()), 0);
    collectEdges();
    if (cancel_) return nullptr;
    place(0);
    if (cancel_) return nullptr;
    emitAll();
    if (cancel_) return nullptr;
    routeEdges(*scene_, cancel_);
    return cancel_ ? nullptr : scene_;
  }

 private:
  using Pairs = std::vector<std::pair<int, int>>;

  const ModelNode& node(int i) const { return model_.nodes()[static_cast<std::size_t>(i)]; }
  const LayoutItem& item(int i) const { return items_.items[static_cast<std::size_t>(i)]; }
  Spot& spot(int i) { return spots_[static_cast<std::size_t>(i)]; }
  const std::vector<int>& stack(const LayoutItem& i, Lane lane) const { return i.stack[static_cast<std::size_t>(lane)]; }

  void collectEdges() {
    for (auto& pairs : pairs_) pairs.resize(model_.groups().size());
    for (const ModelEdge& edge : model_.edges()) {
      const Lane from = node(edge.from).lane, to = node(edge.to).lane;
      if (from != to || (from != Lane::kForward && from != Lane::kGradient) || edge.from >= edge.to) continue;
      const auto [a, b] = items_.common(edge.from, edge.to);
      if (a != b)
        pairs_[from == Lane::kGradient ? 1 : 0][static_cast<std::size_t>(item(a).container)].emplace_back(item(a).local,
                                                                                                          item(b).local);
    }
  }

  // Levels of the nodes of one anchor and lane: a node stands above those it reads.
  // An optimizer node stands level with the weight gradient it reads, so `number` is that of the stacks before it.
  int arrange(const std::vector<int>& nodes, std::size_t widest, float nodeWidth, float* width, bool beside = false) {
    *width = 0;
    if (nodes.empty()) return 0;
    stackOf_.resize(level_.size(), -1);
    if (!beside) ++stackNumber_;
    std::vector<std::size_t> count;
    for (const int n : nodes) {
      int level = 0;
      const auto [begin, end] = model_.inEdges(n);
      for (int e = begin; e < end; ++e) {
        const int from = model_.edges()[static_cast<std::size_t>(e)].from;
        if (from >= n || stackOf_[static_cast<std::size_t>(from)] != stackNumber_) continue;
        const int step = beside && node(from).lane == Lane::kWeight ? 0 : 1;
        level = std::max(level, level_[static_cast<std::size_t>(from)] + step);
      }
      while (static_cast<std::size_t>(level) < count.size() && count[static_cast<std::size_t>(level)] >= widest) ++level;
      if (count.size() <= static_cast<std::size_t>(level)) count.resize(static_cast<std::size_t>(level) + 1, 0);
      ++count[static_cast<std::size_t>(level)];
      level_[static_cast<std::size_t>(n)] = level;
      stackOf_[static_cast<std::size_t>(n)] = stackNumber_;
    }
    const auto most = static_cast<float>(*std::max_element(count.begin(), count.end()));
    *width = most * (nodeWidth + kSideGap) - kSideGap;
    return static_cast<int>(count.size());
  }

  static float pitchOf(Lane lane) { return lane == Lane::kGradient ? kPitch : kSmallPitch; }
  static float stackHeight(int levels, Lane lane) {
    return levels == 0 ? 0 : static_cast<float>(levels - 1) * pitchOf(lane) + kNodeHeight;
  }
  bool isInput(int index) const { return item(index).node >= 0 && node(item(index).node).inputValue >= 0; }

  void measure(int index) {
    const LayoutItem& i = item(index);
    Spot& s = spot(index);
    float weightWidth = 0, optimizerWidth = 0, mainWidth = 0;
    switch (i.kind) {
      case ItemKind::kLeaf:
      case ItemKind::kLoose: {
        const std::size_t widest = i.kind == ItemKind::kLoose ? 2 * kWidest : kWidest;
        const int main = arrange(stack(i, Lane::kGradient), widest, kNodeWidth, &mainWidth);
        const std::size_t beside = i.kind == ItemKind::kLoose ? widest : 1;
        const int weight = arrange(stack(i, Lane::kWeight), beside, kSmallWidth, &weightWidth);
        const int optimizer = arrange(stack(i, Lane::kOptimizer), beside, kSmallWidth, &optimizerWidth, weight > 0);
        s.in[0] = i.kind == ItemKind::kLeaf;
        if (s.in[0]) {
          const bool input = node(i.node).inputValue >= 0;
          s.left[0] = s.right[0] = (input ? kInputWidth : kNodeWidth) / 2;
          s.left[0] += static_cast<float>(stack(i, Lane::kAside).size()) * (kSmallWidth + kSideGap);
        }
        s.in[1] = main + weight + optimizer > 0;
        s.left[1] = s.right[1] = mainWidth / 2;
        s.height = std::max({s.in[0] ? kNodeHeight : 0.0F, stackHeight(main, Lane::kGradient),
                             stackHeight(weight, Lane::kWeight), stackHeight(optimizer, Lane::kOptimizer)});
        levels_[static_cast<std::size_t>(index)] = std::max(weight, optimizer);
        laneWidth_[0][static_cast<std::size_t>(index)] = weightWidth;
        laneWidth_[1][static_cast<std::size_t>(index)] = optimizerWidth;
        break;
      }
      case ItemKind::kClosed: {
        const ModelGroup& group = model_.groups()[static_cast<std::size_t>(i.group)];
        for (int c = 0; c < 2; ++c) {
          s.in[c] = (c == 0 ? group.forwardNodes : group.gradientNodes) > 0;
          if (s.in[c]) s.left[c] = s.right[c] = (i.folded > 1 ? kFoldedWidth : kClosedWidth) / 2;
        }
        s.height = i.folded > 1 ? kFoldedHeight : kClosedHeight;
        break;
      }
      case ItemKind::kOpen: {
        const Extent& inner = extents_[static_cast<std::size_t>(i.group)];
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

  // Longest path over forward edges, then everything that has a consumer goes down to it.
  void rank(const std::vector<int>& members, const Adjacency& in, const Adjacency& out) {
    const int count = static_cast<int>(members.size());
    bool loose = false;
    for (int i = 0; i < count; ++i) {
      int r = 0;
      for (const Neighbour* n = in.begin(i); n != in.end(i); ++n) {
        if (n->item < i) r = std::max(r, spot(members[static_cast<std::size_t>(n->item)]).rank + 1);
      }
      spot(members[static_cast<std::size_t>(i)]).rank = r;
      loose |= item(members[static_cast<std::size_t>(i)]).kind == ItemKind::kLoose;
    }
    for (int i = count - 1; i >= 0; --i) {
      int r = std::numeric_limits<int>::max();
      for (const Neighbour* n = out.begin(i); n != out.end(i); ++n) {
        if (n->item > i) r = std::min(r, spot(members[static_cast<std::size_t>(n->item)]).rank - 1);
      }
      if (r != std::numeric_limits<int>::max()) spot(members[static_cast<std::size_t>(i)]).rank = r;
    }
    // What belongs to all (a global norm) is computed after the whole gradient: above everything.
    if (!loose) return;
    for (const int m : members) spot(m).rank = item(m).kind == ItemKind::kLoose ? 0 : spot(m).rank + 1;
  }

  void sweep(const std::vector<int>& members, const std::vector<std::vector<int>>& rows, Adjacency& in, Adjacency& out,
             int column) {
    for (Adjacency* side : {&in, &out}) {
      for (int i = 0; i < static_cast<int>(members.size()); ++i) {
        for (Neighbour* n = side->begin(i); n != side->end(i); ++n) {
          const int span = std::abs(spot(members[static_cast<std::size_t>(n->item)]).rank -
                                    spot(members[static_cast<std::size_t>(i)]).rank);
          n->weight = span <= 1 ? 1.0F : kLongPull / static_cast<float>(span);
          if (isInput(members[static_cast<std::size_t>(n->item)])) n->weight *= kInputPull;
        }
      }
    }
    std::vector<RowEntry> entries;
    const auto wish = [&](const Adjacency& side, int local, float* x, float* weight) {
      double sum = 0, total = 0;
      for (const Neighbour* n = side.begin(local); n != side.end(local); ++n) {
        const Spot& s = spot(members[static_cast<std::size_t>(n->item)]);
        if (!s.in[column]) continue;
        sum += static_cast<double>(n->weight) * s.x[column];
        total += n->weight;
      }
      if (total <= 0) return false;
      *x = static_cast<float>(sum / total);
      *weight = static_cast<float>(total);
      return true;
    };
    for (int round = 0; round <= kSweeps; ++round) {
      if (cancel_) return;
      // The first pass only takes overlaps away; then along the data flow and against it, ending along it.
      const bool along = round % 2 == 0;
      const bool downwards = along == (column == 0);
      const Adjacency &first = along ? in : out, &second = along ? out : in;
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const std::vector<int>& row = rows[downwards ? k : rows.size() - 1 - k];
        entries.clear();
        for (const int local : row) {
          const Spot& s = spot(members[static_cast<std::size_t>(local)]);
          if (!s.in[column]) continue;
          RowEntry entry{.item = local, .wish = s.x[column], .left = s.left[column], .right = s.right[column]};
          if (round > 0 && !wish(first, local, &entry.wish, &entry.weight)) wish(second, local, &entry.wish, &entry.weight);
          if (column == 0 && isInput(members[static_cast<std::size_t>(local)])) {
            entry.weight *= kInputPull;
            entry.wish -= 1;  // to the left of what it shares the row with
          }
          entries.push_back(entry);
        }
        if (entries.empty()) continue;
        placeRow(entries, kColumnGap);
        for (const RowEntry& e : entries) spot(members[static_cast<std::size_t>(e.item)]).x[column] = e.x;
      }
    }
  }

  void place(int group) {
    if (cancel_) return;
    const std::vector<int>& members = items_.members[static_cast<std::size_t>(group)];
    for (const int m : members) {
      if (item(m).kind == ItemKind::kOpen) place(item(m).group);
    }
    if (cancel_) return;
    laneWidth_[0].resize(items_.items.size());
    laneWidth_[1].resize(items_.items.size());
    levels_.resize(items_.items.size());
    for (const int m : members) measure(m);

    const std::size_t count = members.size();
    Adjacency in(count, pairs_[0][static_cast<std::size_t>(group)], true),
        out(count, pairs_[0][static_cast<std::size_t>(group)], false);
    rank(members, in, out);
    int last = 0;
    for (const int m : members) last = std::max(last, spot(m).rank);
    std::vector<std::vector<int>> rows(static_cast<std::size_t>(last) + 1);
    for (std::size_t i = 0; i < count; ++i)
      rows[static_cast<std::size_t>(spot(members[i]).rank)].push_back(static_cast<int>(i));

    for (const int m : members) spot(m).x[0] = seedOf(item(m));
    sweep(members, rows, in, out, 0);
    for (const int m : members) spot(m).x[1] = spot(m).x[0];
    Adjacency gradientIn(count, pairs_[1][static_cast<std::size_t>(group)], true),
        gradientOut(count, pairs_[1][static_cast<std::size_t>(group)], false);
    sweep(members, rows, gradientIn, gradientOut, 1);
    settle(group, members, rows);
  }

  float seedOf(const LayoutItem& i) const {
    if (seeds_.empty() || i.node < 0) return 0;
    const snapshot::Node* n = model_.node(i.node);
    if (n == nullptr) return 0;
    const auto found = seeds_.find(n->id());
    return found == seeds_.end() ? 0 : found->second;
  }

  // Heights of rows, the two lanes beside the gradient, and the size of the whole.
  void settle(int group, const std::vector<int>& members, const std::vector<std::vector<int>>& rows) {
    Extent& extent = extents_[static_cast<std::size_t>(group)];
    const bool root = group == 0;
    float left[2] = {0, 0}, right[2] = {0, 0};
    bool any[2] = {false, false};
    for (const int m : members) {
      const Spot& s = spot(m);
      for (int c = 0; c < 2; ++c) {
        if (!s.in[c]) continue;
        left[c] = any[c] ? std::min(left[c], s.x[c] - s.left[c]) : s.x[c] - s.left[c];
        any[c] = true;
      }
    }
    const float padLeft = root ? 0 : kPadLeft, padRight[2] = {root                   ? 0
                                                              : model_.hasGradient() ? kPadStubs
                                                                                     : kPadRight,
                                                              root ? 0 : kPadRight};
    for (const int m : members) {
      for (int c = 0; c < 2; ++c) {
        if (spot(m).in[c]) spot(m).x[c] += padLeft - left[c];
      }
    }
    for (int c = 0; c < 2; ++c) {
      std::vector<float> centres;
      for (const int m : members) {
        if (spot(m).in[c] && !isInput(m) && spot(m).left[c] > 0) centres.push_back(spot(m).x[c]);
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
        const Spot& s = spot(m);
        extent.rowHeight[r] = std::max(extent.rowHeight[r], s.height);
        boxed[r] |= item(m).kind == ItemKind::kOpen || item(m).kind == ItemKind::kClosed;
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
        std::stable_sort(row.begin(), row.end(), [&](int a, int b) { return spot(a).x[1] < spot(b).x[1]; });
        float end = from[r];
        for (const int m : row) {
          const float width = laneWidth_[lane][static_cast<std::size_t>(m)];
          if (width <= 0) continue;
          (lane == 0 ? spot(m).weightX : spot(m).optimizerX) = x;
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

  int push(SceneBox box) {
    scene_->boxes.push_back(box);
    return static_cast<int>(scene_->boxes.size()) - 1;
  }

  void emitStack(const std::vector<int>& nodes, Lane lane, int levels, float centre, float left, float rowTop,
                 float rowHeight) {
    if (nodes.empty()) return;
    const float width = lane == Lane::kGradient ? kNodeWidth : kSmallWidth;
    for (const int n : nodes) levels = std::max(levels, level_[static_cast<std::size_t>(n)] + 1);
    std::vector<int> count(static_cast<std::size_t>(levels), 0), used(static_cast<std::size_t>(levels), 0);
    for (const int n : nodes) ++count[static_cast<std::size_t>(level_[static_cast<std::size_t>(n)])];
    const float bottom = rowTop + (rowHeight + stackHeight(levels, lane)) / 2;
    for (const int n : nodes) {
      const auto level = static_cast<std::size_t>(level_[static_cast<std::size_t>(n)]);
      const float span = static_cast<float>(count[level]) * (width + kSideGap) - kSideGap;
      const float x =
          (lane == Lane::kGradient ? centre - span / 2 : left) + static_cast<float>(used[level]++) * (width + kSideGap);
      const float y = bottom - kNodeHeight - static_cast<float>(level) * pitchOf(lane);
      SceneBox box;
      box.at = {x, y, width, kNodeHeight};
      box.lane = lane;
      box.gradient = true;
      box.node = n;
      scene_->boxOfNode[static_cast<std::size_t>(n)] = push(box);
    }
  }

  void emit(int group, float x0, float x1, float y0) {
    const Extent& extent = extents_[static_cast<std::size_t>(group)];
    const float x[2] = {x0, x1};
    for (const int m : items_.members[static_cast<std::size_t>(group)]) {
      const LayoutItem& i = item(m);
      const Spot& s = spot(m);
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
            scene_->openGroups.push_back(index);
          } else {
            closedBox_[c][static_cast<std::size_t>(m)] = index;
          }
        }
        if (i.kind == ItemKind::kOpen) emit(i.group, x0 + s.x[0] - s.left[0], x1 + s.x[1] - s.left[1], y);
        continue;
      }
      if (i.kind == ItemKind::kLeaf) {
        SceneBox box;
        const bool input = node(i.node).inputValue >= 0;
        const float width = input ? kInputWidth : kNodeWidth, boxHeight = input ? kInputHeight : kNodeHeight;
        const float cx = x0 + s.x[0], cy = top + height / 2;
        box.kind = input ? BoxKind::kInput : BoxKind::kNode;
        box.node = i.node;
        box.at = {cx - width / 2, cy - boxHeight / 2, width, boxHeight};
        scene_->boxOfNode[static_cast<std::size_t>(i.node)] = push(box);
        box.kind = BoxKind::kNode;
        box.lane = Lane::kAside;
        const std::vector<int>& aside = stack(i, Lane::kAside);
        for (std::size_t k = 0; k < aside.size(); ++k) {
          box.node = aside[k];
          box.at = {cx - kNodeWidth / 2 - static_cast<float>(aside.size() - k) * (kSmallWidth + kSideGap),
                    cy - kNodeHeight / 2, kSmallWidth, kNodeHeight};
          scene_->boxOfNode[static_cast<std::size_t>(aside[k])] = push(box);
        }
      }
      // Both side lanes count the same levels, so that a weight gradient and its update are level.
      const int side = levels_[static_cast<std::size_t>(m)];
      emitStack(stack(i, Lane::kGradient), Lane::kGradient, 0, x1 + s.x[1], 0, top, height);
      emitStack(stack(i, Lane::kWeight), Lane::kWeight, side, 0, x1 + s.weightX, top, height);
      emitStack(stack(i, Lane::kOptimizer), Lane::kOptimizer, side, 0, x1 + s.optimizerX, top, height);
    }
  }

  void emitAll() {
    GraphScene& scene = *scene_;
    const Extent& root = extents_[0];
    for (auto& boxes : closedBox_) boxes.assign(items_.items.size(), -1);
    scene.boxOfNode.assign(static_cast<std::size_t>(model_.size()), -1);
    emit(0, 0, root.width[0] + kGutter, 0);
    const float width = root.width[1] > 0 ? root.width[0] + kGutter + root.width[1] : root.width[0];
    scene.bounds = {0, 0, std::max(1.0F, width), std::max(1.0F, root.height)};
    scene.columnGap = root.width[1] > 0 ? root.width[0] + kGutter / 2 : 0;
    for (int i = 0; i < model_.size(); ++i) {
      int& box = scene.boxOfNode[static_cast<std::size_t>(i)];
      if (box >= 0) continue;
      const auto m = static_cast<std::size_t>(items_.ofNode[static_cast<std::size_t>(i)]);
      const int column = model_.phase(i) == snapshot::FORWARD ? 0 : 1;
      box = closedBox_[column][m];
    }
    std::vector<BoxF> leaves;
    leaves.reserve(scene.boxes.size());
    for (const SceneBox& b : scene.boxes) leaves.push_back(b.kind == BoxKind::kOpenGroup ? BoxF{0, 0, -1, -1} : b.at);
    scene.leaves.build(std::move(leaves), 400, 240);

    struct Link {
      std::uint64_t key;
      int value;
      bool operator<(const Link& o) const { return key != o.key ? key < o.key : value < o.value; }
      bool operator==(const Link&) const = default;
    };
    std::vector<Link> links;
    links.reserve(model_.edges().size());
    for (const ModelEdge& e : model_.edges()) {
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

  const GraphModel& model_;
  const NodeSeeds& seeds_;
  const std::atomic<bool>& cancel_;
  LayoutItems items_;
  std::vector<Spot> spots_;
  std::vector<Extent> extents_;
  std::vector<Pairs> pairs_[2];
  std::vector<float> laneWidth_[2];
  std::vector<int> closedBox_[2];
  std::vector<int> level_, stackOf_, levels_;
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
    if (box.kind == BoxKind::kNode && !box.gradient) seeds.emplace(scene.model->node(box.node)->id(), box.at.centerX());
  }
  return seeds;
}

OpenGroups allGroups(const GraphModel& model) {
  OpenGroups open;
  for (const ModelGroup& group : model.groups()) {
    if (!group.transparent) open.insert(group.path);
  }
  return open;
}

OpenGroups defaultOpen(const GraphModel& model, int nodes) {
  return model.size() <= nodes ? allGroups(model) : OpenGroups();
}

OpenGroups groupsAround(const GraphModel& model, int modelNode) {
  OpenGroups open;
  for (int g = model.nodes()[static_cast<std::size_t>(modelNode)].group; g > 0;
       g = model.groups()[static_cast<std::size_t>(g)].parent) {
    if (!model.groups()[static_cast<std::size_t>(g)].transparent)
      open.insert(model.groups()[static_cast<std::size_t>(g)].path);
  }
  return open;
}

}  // namespace stepscope
