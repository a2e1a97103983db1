// Where a node came from: what makes every view able to light up a kernel's gradient rule, forward node and module.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ir/few.h"
#include "engine/ir/ids.h"
#include "engine/ir/interned_text.h"
#include "engine/ir/shared_blocks.h"

namespace stepscope {

// What a phase made a node for: where its key comes from (keys.h). The phase that makes the node sets it, and nobody changes
// it afterwards: passes may rewrite provenance, ids keep their origin. Imported nodes and those that passes make have none.
struct Origin {
  enum class Kind : std::uint8_t {
    kNone,
    kRoot,        // for the whole step; detail: its name before it was made unique
    kGradient,    // of `node` with respect to `input`, the `ordinal`-th; detail: the op, where a pass had changed it
    kSum,         // of the contributions to d loss / d `value`
    kRecomputed,  // repeats `node`
    kUpdate,      // of the parameter `value`; detail: empty for the update itself, or "accumulate" …
  };
  Kind kind = Kind::kNone;
  std::int16_t input = 0;
  std::int32_t ordinal = 0;
  NodeId node;
  ValueId value;
  InternedText detail;
};

// What nodes were before passes changed them; for all nodes that were there when it was recorded.
struct Births {
  std::size_t importedNodes = 0, importedValues = 0;  // ids below these are the imported ones
  std::size_t importedEdits = 0;                      // of the edit log: what came after the import begins here
  SharedBlocks<InternedText, 1024> ops;               // by node; empty for one that had been removed before
  SharedBlocks<std::uint32_t, 1024> first;            // by node, and one more: where its inputs begin
  SharedBlocks<ValueId, 1024> inputs;
};

struct Provenance {
  Few<NodeId> sources;              // the node or nodes it was made from; empty for an imported node
  InternedText pass;                // the pass that made it ("import", "inline", "gradient", "optimizer", …)
  NodeId imported;                  // the imported node at the root of the lineage: key of random numbers
  NodeId forward;                   // for backward and recomputed nodes: the forward node they belong to
  InternedText modulePath;          // "transformer.h.0.attn", "" when unknown
  bool modulePathInferred = false;  // taken from neighbours, not from the file
  InternedText sourceFile;          // as recorded by the exporter; hostile text, never opened by itself
  int sourceLine = 0;               // 1-based; 0 when unknown
  InternedText sourceCode;          // the recorded line of Python, if any
};

}  // namespace stepscope
