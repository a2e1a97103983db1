#include "engine/onnx/tensor_pb.h"

#include <gtest/gtest.h>

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

Result<NamedTensor> parseBytes(const std::string& bytes) {
  return parseTensor(std::as_bytes(std::span(bytes)), "input_0.pb");
}

TEST(TensorFile, ReadsWhatItWrites) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "output_0.pb";
  for (const Tensor& tensor :
       {Tensor::ints(std::vector<std::int64_t>{1, -2, 3}), Tensor::strings({2}, {"a", std::string("\0b", 2)}),
        Tensor(DType::kBF16, {0, 2}), Tensor::scalar(DType::kBool, 1)}) {
    ASSERT_TRUE(writeTensorFile(path, "y", tensor.view()).has_value());
    const auto back = readTensorFile(path);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->name, "y");
    EXPECT_EQ(Attributes({{"t", back->tensor}}), Attributes({{"t", tensor}}));
  }
}

TEST(TensorFile, BrokenFilesGiveTypedErrors) {
  EXPECT_EQ(readTensorFile("/nonexistent/input_0.pb").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parseBytes("").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(parseBytes("\x0a\xff").error().code, ErrorCode::kCorrupt);
  onnx::TensorProto proto;
  proto.add_dims(3);
  proto.set_data_type(1);
  EXPECT_EQ(parseBytes(proto.SerializeAsString()).error().code, ErrorCode::kInvalidArgument);
  setExternal(proto, "weights.bin");
  EXPECT_EQ(parseBytes(proto.SerializeAsString()).error().code, ErrorCode::kUnsupported);
}

TEST(TensorFile, SequencesAndOptionalsAreRefusedWithTheReason) {
  onnx::TensorProto element;
  element.set_data_type(1);
  element.add_float_data(1);
  const std::string content = element.SerializeAsString();
  for (const bool named : {true, false}) {
    // SequenceProto: name = 1, elem_type = 2, tensor_values = 3.
    const std::string sequence =
        (named ? std::string("\x0a\x03seq") : std::string()) + "\x10\x01\x1a" + static_cast<char>(content.size()) + content;
    const auto result = parseBytes(sequence);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kUnsupported) << result.error().message;
    EXPECT_NE(result.error().message.find("sequence or optional"), std::string::npos) << result.error().message;
  }
}

}  // namespace
}  // namespace stepscope::testing
