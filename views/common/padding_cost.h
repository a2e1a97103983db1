// SPDX-License-Identifier: GPL-3.0-or-later
// What padding and ignored labels cost: the time that instructions that work on every place of a batch take as a rule
// (median_times.h), times the share of places of the newest batch that hold no data. Pure functions of the store; GUI
// thread.
//
// An instruction works on every place when a value that it reads or writes has the batch and the length of the input among
// its extents, as [batch, …, length, …] or [batch × length, …]. Attention looks at pairs of places, of which padding spoils
// more: the time is the least that can be said. What the loss ignores spoils the instructions whose values have the classes,
// too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

struct PaddingCost {
  struct Of {
    std::string input;    // hostile
    bool labels = false;  // places that the loss ignores; else padding
    int value = -1;
    double share = 0;                      // of its places that hold no data
    std::int64_t ns = 0;                   // of a step
    std::int64_t length = 0, longest = 0;  // of a row, and of the longest that holds data
    std::int64_t cutNs = 0;                // that a cut at the longest row would save at least
  };
  std::vector<Of> inputs;            // most expensive first
  std::vector<double> instructions;  // ns of each that go to places without data; -1: it has no such places
  std::int64_t stepNs = 0;           // of all instructions, as a rule

  static PaddingCost of(const SnapshotStore& store);
};

}  // namespace stepscope
