// SPDX-License-Identifier: GPL-3.0-or-later
// From which states a session can go back, and what the way to a step costs. Facts; no session is needed to read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepscope {

struct RewindWay {
  std::int64_t from = 0;      // the state that it begins with, as every step here: the state before that one
  std::int64_t repeated = 0;  // steps that run again from there
  bool anew = false;          // a new worker builds the model first
  double ns = 0;              // that all of it takes; 0: not known
};

struct RewindWays {
  std::int64_t first = 0, last = 0;      // steps that can be gone to: where the run begins, where it stands
  bool inStep = false;                   // some of step `last` ran
  std::vector<std::int64_t> loaded;      // states that steps can be repeated from, ascending
  std::vector<std::int64_t> remembered;  // states of the worker's own, which it returns to at once; in any order
  double stepNs = 0, buildNs = 0;        // of one step, of a build, as they were measured; 0: not known

  RewindWay to(std::int64_t step) const {
    RewindWay way;
    const auto newest = std::upper_bound(loaded.begin(), loaded.end(), step);
    way.anew = newest == loaded.begin();
    way.from = way.anew ? first : *std::prev(newest);
    if (std::find(remembered.begin(), remembered.end(), step) != remembered.end()) way = {step};
    way.repeated = step - way.from;
    const double steps = static_cast<double>(way.repeated) * stepNs;
    way.ns = way.repeated > 0 && stepNs == 0 ? 0 : steps + (way.anew ? buildNs : 0);
    return way;
  }
};

}  // namespace stepscope
