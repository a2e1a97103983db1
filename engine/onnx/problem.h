// What is wrong with a model: all of it, not the first thing found.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/data/shown_name.h"
#include "kernels/status.h"

namespace stepscope {

struct Problem {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string where;    // "node 'attn/probs'", "initializer 'w'", "graph 'main'", "model"
  std::string message;  // "<found>; <expected>"
  std::string hint;     // what helps, or empty
  // "<where>: <message>[; <hint>]"
  std::string text() const;
  // The name of the initializer whose external data are not there, for which LoadOptions::missingWeights helps; else empty.
  std::string missingWeight() const;
};

// Gathers problems up to limits::kProblemsKept and counts the rest.
class ProblemList {
 public:
  void add(ErrorCode code, std::string where, std::string message, std::string hint = "");
  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  const std::vector<Problem>& problems() const { return problems_; }
  // One Error: the code of the first problem; the text of the first three and how many more there are. Only when !empty().
  Error toError() const;

 private:
  std::vector<Problem> problems_;
  std::size_t count_ = 0;
};

}  // namespace stepscope
