// Where a node came from: what makes every view able to light up a kernel's gradient rule, forward node and module.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/ids.h"

namespace stepscope {

struct Provenance {
  std::vector<NodeId> sources;      // the node or nodes it was made from; empty for an imported node
  std::string pass;                 // the pass that made it ("import", "inline", "gradient", "optimizer", …)
  NodeId imported;                  // the imported node at the root of the lineage: key of random numbers
  NodeId forward;                   // for backward and recomputed nodes: the forward node they belong to
  std::string modulePath;           // "transformer.h.0.attn", "" when unknown
  bool modulePathInferred = false;  // taken from neighbours, not from the file
  std::string sourceFile;           // as recorded by the exporter; hostile text, never opened by itself
  int sourceLine = 0;               // 1-based; 0 when unknown
  std::string sourceCode;           // the recorded line of Python, if any
};

}  // namespace stepscope
