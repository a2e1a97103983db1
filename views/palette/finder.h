// SPDX-License-Identifier: GPL-3.0-or-later
// Finds nodes, tensors, instructions and source lines by name: among 100,000 within 50 ms.
//
// Every word of the query has to occur, letter case aside. Exact names come first, then names that start with the query,
// then words that start with it, then the rest; shorter names before longer ones.
#pragma once

#include <QString>
#include <memory>
#include <vector>

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

struct Found {
  enum Kind { kNode, kValue, kInstruction, kSource };
  Kind kind = kNode;
  int id = -1;  // node id, value id or instruction; of a source line the first node made from it
  QString title, detail, category;
  QString file;  // of a source line
  int line = 0;

  Selection target() const;
};

class Finder {
 public:
  // Takes names from the snapshots; runs on any thread.
  static std::shared_ptr<const Finder> make(GraphPtr graph, PlanPtr plan);

  std::vector<Found> find(const QString& query, std::size_t most) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Found::Kind kind;
    int id;
    std::uint32_t begin, length;  // of its folded text in text_
    std::uint32_t nameLength;     // the first part of the text is the name
  };

  Found describe(const Entry& entry) const;

  struct Source {
    std::string file, code;
    int line;
    int node;  // the first in graph order
    int nodes;
  };

  GraphPtr graph_;
  PlanPtr plan_;
  std::vector<Source> sources_;  // an entry's id of kind kSource is a place in here
  std::string text_;             // folded to lower case, one after the other
  std::vector<Entry> entries_;
};

}  // namespace stepscope
