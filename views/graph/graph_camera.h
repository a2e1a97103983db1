// SPDX-License-Identifier: GPL-3.0-or-later
// What of a graph scene is in view, and how one moves there. A value type; sizes in pixels of the widget.
#pragma once

#include "views/drawing/viewport.h"
#include "views/graph/scene.h"

namespace stepscope {

class GraphCamera {
 public:
  const Viewport& view() const { return view_; }
  // Follows the size of the widget until the user moves.
  bool fitted() const { return fitted_; }
  double zoomPercent() const { return 100 * view_.scaleX / base(); }
  static double base();  // pixels per unit at 100 %

  // A new size of the widget; `scene` may be nullptr.
  void resize(const GraphScene* scene, QSizeF size);
  void fitAll(const GraphScene& scene);
  // A box with some of its surroundings.
  void fitBox(const GraphScene& scene, int box);
  // Moves only when the box, or the one it belongs to (`partner`; -1 none), is not in view or too small to be read; false:
  // nothing moved. A zoom that the user chose is kept; otherwise it gets smaller until both are in view.
  bool showBox(const GraphScene& scene, int box, int partner = -1);
  bool contains(const GraphScene& scene, int box) const;
  // An open group, forward and gradient column of it, from side to side: moves sideways, and only where it is too wide gets
  // smaller, as far as names can be read. False: nothing moved.
  bool showGroup(const GraphScene& scene, int group);
  void zoomAround(const GraphScene& scene, QPointF pixel, double factor);
  void pan(const GraphScene& scene, QPointF pixels);
  // A box went from one place to another in a new scene: it keeps its place on the screen, a group by its title.
  void follow(const GraphScene& scene, const BoxF& before, const BoxF& after, bool group);
  // Some of the picture always stays in view.
  void clamp(const GraphScene& scene);

 private:
  // No empty place beside the picture while there is more of it on the other side; what has room stands in the middle.
  void fill(const GraphScene& scene);

  Viewport view_;
  bool fitted_ = true;
  bool ownZoom_ = false;  // the user's
};

// Around the whole picture, in pixels.
constexpr double kGraphMargin = 28;

}  // namespace stepscope
