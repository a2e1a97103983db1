// SPDX-License-Identifier: GPL-3.0-or-later
// The made-up training step the fake worker speaks about: a small transformer with its gradient and AdamW, or a generated
// step of any size.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"

namespace stepscope {

class FakeModel {
 public:
  explicit FakeModel(int blocks);
  static FakeModel generated(int nodes);

  snapshot::Graph graph;
  snapshot::Plan plan;
  int loss = -1, firstBackward = 0, firstOptimizer = 0;

 private:
  FakeModel() = default;
  int value(const std::string& name, snapshot::ValueRole role, const std::vector<std::string>& dims,
            const std::string& dtype);
  int parameter(const std::string& name, const std::vector<std::string>& dims);
  int node(const std::string& op, const std::string& category, const std::string& module, const std::vector<int>& inputs,
           const std::string& out, const std::vector<std::string>& dims);
  void makePlan();

  snapshot::Phase phase = snapshot::FORWARD;
  int forward = -1;
  std::map<int, int> position;
};

}  // namespace stepscope
