// Text of loops for small_step: bodies, conditions, and what a refusal says.
#pragma once

#include <gtest/gtest.h>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {

inline const std::string kYes = "initializer { name: \"yes\" data_type: 9 int32_data: 1 } ";

// The attribute `body` of a loop; names are separated by blanks.
inline std::string body(const std::string& inputs, const std::string& nodes, const std::string& outputs) {
  std::string text = "attribute { name: \"body\" type: GRAPH g { name: \"body\" " + nodes;
  const auto list = [&text](const char* field, const std::string& names) {
    for (std::size_t at = 0; at < names.size();) {
      const std::size_t end = std::min(names.find(' ', at), names.size());
      text += std::string(field) + " { name: \"" + names.substr(at, end - at) + "\" } ";
      at = end + 1;
    }
  };
  list("input", inputs);
  list("output", outputs);
  return text + "} } ";
}

inline std::string sum(const std::string& y) { return node("ReduceSum", y, "loss", attribute("keepdims", 0)); }

inline void expectError(const Result<SmallStep>& step, const std::string& part) {
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find(part), std::string::npos) << step.error().message;
}

}  // namespace stepscope::testing
