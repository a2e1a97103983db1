// What a caller does wrong ends in a typed error that says what was found and expected, and the session goes on.
#include <gtest/gtest.h>

#include "tests/app/api/sessions.h"

namespace stepscope::testing {
namespace {

struct Wrong {
  int code;
  std::string part;  // of the message
};

void expectError(ss_error* error, const Wrong& expected) {
  int code = 0;
  const std::string message = messageOf(error, &code);
  EXPECT_EQ(code, expected.code) << message;
  EXPECT_NE(message.find(expected.part), std::string::npos) << message;
}

class ApiErrors : public ::testing::Test {
 protected:
  void SetUp() override { session_ = openSession(writeLinearModel(folder_), {{"optimizer", "sgd"}, {"lr", "0.1"}}); }

  ss_error* feed(const char* name, ss_tensor tensor, const char* other = "y") {
    const ss_tensor y = tensorOf(numbers_, dims_);
    const ss_tensor* tensors[] = {&tensor, &y};
    const char* names[] = {name, other};
    return ss_feed(session_.get(), names, tensors, 2);
  }
  ss_error* step() {
    auto record = sized<ss_step_record>();
    return ss_step(session_.get(), &record);
  }
  void TearDown() override {  // whatever was wrong: the session still trains
    EXPECT_DONE(feed("x", tensorOf(numbers_, dims_)));
    EXPECT_DONE(step());
  }

  const TemporaryFolder folder_;
  ApiSession session_;
  const std::vector<std::int64_t> dims_{1, 4};
  const std::vector<float> numbers_{1, 2, 3, 4};
};

TEST_F(ApiErrors, OfSuccessIsNothing) {
  EXPECT_EQ(ss_error_code(nullptr), 0);
  EXPECT_STREQ(ss_error_message(nullptr), "");
  ss_error_free(nullptr);
  ss_close(nullptr);
  ss_cancel(nullptr);
}

TEST_F(ApiErrors, OfOpening) {
  ss_session* session = nullptr;
  expectError(ss_open(nullptr, nullptr, nullptr, 0, &session), {SS_INVALID_ARGUMENT, "NULL"});
  expectError(ss_open("/nonexistent.onnx", nullptr, nullptr, 0, nullptr), {SS_INVALID_ARGUMENT, "place for the session"});
  EXPECT_NE(messageOf(ss_open("/nonexistent.onnx", nullptr, nullptr, 0, &session)).find("'nonexistent.onnx'"),
            std::string::npos);
  EXPECT_EQ(session, nullptr);
  const std::string model = (folder_.path() / "linear.onnx").string();
  const char* names[] = {"no-such-option"};
  const char* values[] = {"1"};
  expectError(ss_open(model.c_str(), names, values, 1, &session), {SS_INVALID_ARGUMENT, "no-such-option"});
  names[0] = "lr";
  values[0] = "much";
  expectError(ss_open(model.c_str(), names, values, 1, &session), {SS_INVALID_ARGUMENT, "much"});
  values[0] = "\xff\xfe";
  expectError(ss_open(model.c_str(), names, values, 1, &session), {SS_INVALID_ARGUMENT, "UTF-8"});
  values[0] = nullptr;
  expectError(ss_open(model.c_str(), names, values, 1, &session), {SS_INVALID_ARGUMENT, "NULL"});
  EXPECT_EQ(session, nullptr);
}

TEST_F(ApiErrors, OfFeeding) {
  expectError(ss_feed(session_.get(), nullptr, nullptr, 2), {SS_INVALID_ARGUMENT, "NULL"});
  ss_tensor tensor = tensorOf(numbers_, dims_);
  tensor.size = 8;
  expectError(feed("x", tensor), {SS_INVALID_ARGUMENT, ".size is 8"});
  tensor = tensorOf(numbers_, dims_);
  tensor.bytes = 15;
  expectError(feed("x", tensor), {SS_INVALID_ARGUMENT, "15 bytes"});
  tensor = tensorOf(numbers_, dims_);
  tensor.data = nullptr;
  expectError(feed("x", tensor), {SS_INVALID_ARGUMENT, "at NULL"});
  tensor = tensorOf(numbers_, dims_);
  tensor.dtype = 77;
  expectError(feed("x", tensor), {SS_INVALID_ARGUMENT, "element type 77"});
  tensor.dtype = SS_STRING;
  expectError(feed("x", tensor), {SS_INVALID_ARGUMENT, "element type 8"});
  const std::vector<std::int64_t> negative{-1, 4}, huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  tensor = tensorOf(numbers_, negative);
  EXPECT_NE(messageOf(feed("x", tensor)), "");
  tensor = tensorOf(numbers_, huge);
  EXPECT_NE(messageOf(feed("x", tensor)), "");
  expectError(feed("x", tensorOf(numbers_, dims_), "x"), {SS_INVALID_ARGUMENT, "given twice"});
}

TEST_F(ApiErrors, OfABatchThatDoesNotFitTheModel) {
  ASSERT_DONE(feed(
      "z", tensorOf(numbers_, dims_)));  // inputs of the step are known when it is built: with an attached loss it has more
  expectError(step(), {SS_NOT_FOUND, "'z' is no input"});
  const std::vector<std::int64_t> flat{4}, wide{2, 2}, entries{1, 1, 4};
  ASSERT_DONE(feed("x", tensorOf(numbers_, flat)));
  expectError(step(), {SS_INVALID_ARGUMENT, "expected float32[batch, 4]"});
  ASSERT_DONE(feed("x", tensorOf(numbers_, wide)));
  expectError(step(), {SS_INVALID_ARGUMENT, "expected float32[batch, 4]"});
  ASSERT_DONE(feed("x", tensorOf(numbers_, entries)));
  expectError(step(), {SS_INVALID_ARGUMENT, "expected float32[batch, 4]"});
}

TEST_F(ApiErrors, OfAStepWithoutABatch) {
  ASSERT_DONE(feed("x", tensorOf(numbers_, dims_)));
  ASSERT_DONE(step());
  expectError(step(), {SS_NOT_FOUND, "batch of step 1: none was fed"});
}

TEST_F(ApiErrors, OfStructsThatAreNotThere) {
  ASSERT_DONE(feed("x", tensorOf(numbers_, dims_)));
  expectError(ss_step(session_.get(), nullptr), {SS_INVALID_ARGUMENT, "NULL"});
  ss_step_record record{};
  expectError(ss_step(session_.get(), &record), {SS_INVALID_ARGUMENT, ".size is 0"});
  expectError(ss_step(nullptr, &record), {SS_INVALID_ARGUMENT, "the session is NULL"});
  std::size_t count = 0;
  expectError(ss_inputs(session_.get(), nullptr, &count), {SS_INVALID_ARGUMENT, "NULL"});
  ASSERT_DONE(ss_build(session_.get()));
  auto tensor = sized<ss_tensor>();
  expectError(ss_value(session_.get(), "nobody", &tensor), {SS_NOT_FOUND, "'nobody'"});
  expectError(ss_value(session_.get(), "loss", nullptr), {SS_NOT_FOUND, ""});  // no step has run
  expectError(ss_state(session_.get(), "nobody", &tensor), {SS_NOT_FOUND, "'nobody'"});
  expectError(ss_state(session_.get(), "w", nullptr), {SS_INVALID_ARGUMENT, "NULL"});
  expectError(ss_gradient(session_.get(), "nobody", &tensor), {SS_NOT_FOUND, "'nobody'"});
}

TEST_F(ApiErrors, OfBreakpoints) {
  ASSERT_DONE(feed("x", tensorOf(numbers_, dims_)));
  for (const auto& [condition, expected] : std::vector<std::pair<const char*, Wrong>>{
           {"node nobody", {SS_NOT_FOUND, "'nobody'"}},
           {"instruction 9999", {SS_INVALID_ARGUMENT, "9999"}},
           {"instruction x", {SS_INVALID_ARGUMENT, "'x'"}},
           {"phase middle", {SS_INVALID_ARGUMENT, "'middle'"}},
           {"loss is large", {SS_INVALID_ARGUMENT, "loss is large"}},
       })
    expectError(ss_break_on(session_.get(), &condition, 1), expected);
}

TEST_F(ApiErrors, OfAnOptionThatCannotBeBuilt) {
  ASSERT_DONE(feed("x", tensorOf(numbers_, dims_)));
  ASSERT_DONE(ss_build(session_.get()));
  expectError(ss_set(session_.get(), "optimizer", "magic"), {SS_INVALID_ARGUMENT, "magic"});
  expectError(ss_rewind(session_.get(), 99), {SS_NOT_FOUND, "99"});
  expectError(ss_load(session_.get(), "/nonexistent.safetensors", 0), {SS_NOT_FOUND, "'nonexistent.safetensors'"});
  expectError(ss_save(session_.get(), "/nonexistent/state.safetensors"), {SS_IO, "'state.safetensors'"});
}

}  // namespace
}  // namespace stepscope::testing
