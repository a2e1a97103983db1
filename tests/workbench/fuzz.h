// SPDX-License-Identifier: GPL-3.0-or-later
// What a broken or hostile worker could send in place of an answer. The same seed does the same damage.
//
// Well-framed lies: fields of any depth changed to odd values, elements dropped or doubled, an answer of another kind,
// answers in the wrong order, twice, or with an id nobody asked for. Broken streams: cut, oversized, random bytes.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "engine/snapshot/worker.pb.h"

namespace stepscope {

class Fuzz {
 public:
  explicit Fuzz(int seed) : on_(seed >= 0), random_(static_cast<unsigned>(seed)) {}

  // The bytes to send for this answer; sound ones while fuzzing is off, and for the first answers, so that there is a
  // session.
  std::string frames(const snapshot::Response& answer);
  static std::string frame(const std::string& body);

 private:
  void change(google::protobuf::Message& message, int depth);
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  bool on_;
  std::mt19937 random_;
  int sent_ = 0;
  std::vector<std::string> held_;  // to come later, out of order
};

}  // namespace stepscope
