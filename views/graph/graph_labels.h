// SPDX-License-Identifier: GPL-3.0-or-later
// The words on boxes and lines of a graph picture: made when first seen, kept with the model. All text is harmless. GUI
// thread.
#pragma once

#include <QStringList>
#include <vector>

#include "views/graph/graph_marks.h"
#include "views/graph/scene.h"

namespace stepscope {

class GraphLabels {
 public:
  GraphLabels() = default;
  explicit GraphLabels(std::shared_ptr<const GraphModel> model);

  const QString& title(int modelNode);      // "MatMul", or the name of an input
  const QString& sub(int modelNode);        // "mlp.c_fc  192 → 768", "mlp.c_fc · d weight"
  const QString& shape(int valuePosition);  // "2×128×768", "2×128×768 bf16"
  QString stub(const GraphScene& scene, int edge, bool atSource, int more);  // "→ GeluGrad mlp.act", "→ ×3", "mask →"
  QString stash(const SceneEdge& edge) const;                                // "stash · 768 KiB"

  QString groupTitle(const SceneBox& box) const;                               // "gradient of transformer.h.0 … h.10"
  QString groupCount(const SceneBox& box) const;                               // "11 × 32 nodes"
  QString groupSource(int group);                                              // "block.py:54", the first node's place
  QString foldedLine(const SceneBox& box) const;                               // "11 identical blocks, folded"
  QStringList groupFacts(const SceneBox& box, const GraphMarks& marks) const;  // "17.9 ms", "59.8 MiB stashed"
  QString toolTip(const SceneBox& box, const GraphMarks& marks);               // plain text, several lines

 private:
  QString makeSub(int modelNode) const;

  std::shared_ptr<const GraphModel> model_;
  std::vector<QString> titles_, subs_, shapes_, sources_;
};

}  // namespace stepscope
