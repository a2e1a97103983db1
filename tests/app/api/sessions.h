// Sessions of libstepscope, with its errors as failures of the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/api/stepscope.h"
#include "tests/app/api/linear_model.h"
#include "tests/support/models.h"

namespace stepscope::testing {

struct CloseSession {
  void operator()(ss_session* session) const { ss_close(session); }
};
using ApiSession = std::unique_ptr<ss_session, CloseSession>;
using Settings = std::vector<std::pair<const char*, std::string>>;

// The message of an error, which is freed; empty for success. `code`: may be null.
inline std::string messageOf(ss_error* error, int* code = nullptr) {
  if (code) *code = ss_error_code(error);
  std::string message = ss_error_message(error);
  ss_error_free(error);
  return message;
}
#define EXPECT_DONE(call) EXPECT_EQ(::stepscope::testing::messageOf(call), "")
#define ASSERT_DONE(call) ASSERT_EQ(::stepscope::testing::messageOf(call), "")

inline ApiSession openSession(const std::filesystem::path& model, const Settings& settings) {
  std::vector<const char*> names, values;
  for (const auto& [name, value] : settings) {
    names.push_back(name);
    values.push_back(value.c_str());
  }
  ss_session* session = nullptr;
  EXPECT_DONE(ss_open(model.c_str(), names.data(), values.data(), names.size(), &session));
  return ApiSession(session);
}

inline ApiSession openDigits(Settings settings = {}) {
  settings.emplace_back("data", digits().data.string());
  settings.emplace_back("threads", "2");
  return openSession(digits().model, settings);
}

template <typename Struct>
Struct sized() {
  Struct empty{};
  empty.size = sizeof(Struct);
  return empty;
}

inline ss_tensor tensorOf(const std::vector<float>& numbers, const std::vector<std::int64_t>& dims) {
  return {sizeof(ss_tensor), SS_FLOAT32, dims.data(), dims.size(), numbers.data(), numbers.size() * sizeof(float)};
}

inline std::vector<float> floatsOf(const ss_tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data);
  return {data, data + tensor.bytes / sizeof(float)};
}

inline std::filesystem::path writeLinearModel(const TemporaryFolder& folder, float start = 0.5F) {
  return folder.write("linear.onnx", linearModel(start));
}

}  // namespace stepscope::testing
