#include "engine/data/safetensors.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/data/npy.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

std::string withHeader(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

Result<SafetensorsFile> read(const std::string& bytes) { return parseSafetensors(std::as_bytes(std::span(bytes))); }

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Safetensors, WritesSortedNamesInTheUsualLayout) {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 2};
  const Tensor b = Tensor::of<float>({2}, std::span(values));
  const Tensor a = Tensor::scalar(DType::kI64, 7);
  ASSERT_TRUE(writeSafetensors(folder.path() / "c.safetensors", {{"b", b.view()}, {"a", a.view()}}).has_value());
  const std::string bytes = slurp(folder.path() / "c.safetensors");
  const std::string header =
      R"({"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ((bytes.size() - 16) % 8, 0u);
  const auto back = read(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->tensors.at("b").as<float>()[1], 2.0f);
  EXPECT_EQ(back->tensors.at("a").as<std::int64_t>()[0], 7);
}

TEST(Safetensors, KeepsMetadataAndHostileNames) {
  const TemporaryFolder folder;
  const Tensor tensor(DType::kBF16, {0, 3});
  const std::string name = "a\"b\\\n<script>";
  ASSERT_TRUE(writeSafetensors(folder.path() / "c.safetensors", {{name, tensor.view()}}, {{"step", "12"}, {"é", "\x01"}})
                  .has_value());
  const auto back = readSafetensors(folder.path() / "c.safetensors");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->tensors.at(name).dims(), (Dims{0, 3}));
  EXPECT_EQ(back->metadata, (std::map<std::string, std::string>{{"step", "12"}, {"é", "\x01"}}));
}

// A file with holes: a tensor of more than 2^32 elements, and one behind it, which only 64 bits can address.
TEST(Safetensors, ReadsWhatLiesBehindMoreThanTwoToThe32Elements) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "large.safetensors";
  constexpr std::int64_t kElements = (std::int64_t{1} << 32) + 8, kBytes = kElements + 12;
  const std::string header = R"({"big":{"dtype":"U8","shape":[4294967304],"data_offsets":[0,4294967304]},)"
                             R"("small":{"dtype":"F32","shape":[3],"data_offsets":[4294967304,4294967316]}})";
  std::ofstream(path, std::ios::binary) << withHeader(header, "");
  const auto begin = static_cast<std::int64_t>(std::filesystem::file_size(path));
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(begin + kBytes));
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const float values[] = {1, 2, 3};
    file.seekp(begin + kElements);
    file.write(reinterpret_cast<const char*>(values), sizeof(values));
  }
  const auto reader = SafetensorsReader::open(path);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->entries().at("big").dims, (Dims{kElements}));
  const Tensor small(DType::kF32, {3});
  ASSERT_TRUE(reader->read(reader->entries().at("small"), small.view()).has_value());
  EXPECT_EQ(small.as<float>()[0], 1.0f);
  EXPECT_EQ(small.as<float>()[2], 3.0f);
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(begin + kBytes - 1));
  EXPECT_FALSE(SafetensorsReader::open(path).has_value());
}

TEST(Safetensors, BrokenFilesGiveTypedErrors) {
  const auto one = [](const std::string& body, const std::string& data = "datadata") {
    return withHeader("{\"a\":{" + body + "}}", data);
  };
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  ASSERT_TRUE(read(one(good)).has_value());
  const std::vector<std::tuple<std::string, ErrorCode, std::string>> cases{
      {"", ErrorCode::kCorrupt, "0 bytes"},
      {"1234567", ErrorCode::kCorrupt, "7 bytes"},
      {std::string(8, '\xff'), ErrorCode::kLimitExceeded, "header of 18446744073709551615 bytes"},
      {std::string("\x00\xe1\xf5\x05\0\0\0\0{}", 10), ErrorCode::kCorrupt, "in a file of 10"},
      {std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10), ErrorCode::kLimitExceeded, "100000001"},
      {withHeader("[]", ""), ErrorCode::kCorrupt, "does not begin with"},
      {withHeader("{", ""), ErrorCode::kCorrupt, "malformed JSON"},
      {withHeader("{\"a\":" + std::string(1 << 20, '['), ""), ErrorCode::kCorrupt, "an array in the wrong place"},
      {withHeader("{\"a\":{\"b\":{\"c\":{}}}}", ""), ErrorCode::kCorrupt, "too deep"},
      {withHeader("{\"a\":{" + good + "},\"a\":{" + good + "}}", "datadata"), ErrorCode::kCorrupt, "'a' twice"},
      {one(good, "data"), ErrorCode::kInvalidArgument, "inside the file"},
      {one(good, "datadata!"), ErrorCode::kInvalidArgument, "9 bytes of data"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])", "datadatadata"), ErrorCode::kInvalidArgument,
       "holes or overlap"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", "data"), ErrorCode::kInvalidArgument, "4 bytes; expected 8"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,-8])"), ErrorCode::kCorrupt, "a negative number"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), ErrorCode::kCorrupt, "two data_offsets"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), ErrorCode::kCorrupt, "more than two"},
      {one(R"("dtype":"F32","shape":[2.5],"data_offsets":[0,8])"), ErrorCode::kCorrupt, "a fraction"},
      {one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), ErrorCode::kCorrupt, "a negative number"},
      {one(R"("dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,8])"), ErrorCode::kCorrupt, "too large"},
      {one(R"("dtype":"F32","shape":[70368744177664,70368744177664],"data_offsets":[0,8])"), ErrorCode::kInvalidArgument,
       "fits in memory"},
      {one(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])"), ErrorCode::kCorrupt, "too many axes"},
      {one(R"("dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8])"), ErrorCode::kUnsupported, "F8_E4M3"},
      {one(R"("dtype":null,"shape":[2],"data_offsets":[0,8])"), ErrorCode::kCorrupt, "null"},
      {one(R"("dtype":"F32","data_offsets":[0,8])"), ErrorCode::kCorrupt, "without dtype, shape"},
      {one(R"("dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8])"), ErrorCode::kCorrupt, "shape twice"},
      {withHeader("{\"__metadata__\":{\"a\":1}}", ""), ErrorCode::kCorrupt, "a number in the wrong place"},
      {withHeader("{\"a\":1}", ""), ErrorCode::kCorrupt, "a number in the wrong place"},
      {withHeader("{\"a\":\"text\"}", ""), ErrorCode::kCorrupt, "text in the wrong place"}};
  for (const auto& [bytes, code, text] : cases) {
    const auto file = read(bytes);
    ASSERT_FALSE(file.has_value()) << text;
    EXPECT_EQ(errorCodeName(file.error().code), errorCodeName(code)) << file.error().message;
    EXPECT_NE(file.error().message.find(text), std::string::npos) << file.error().message << " lacks " << text;
  }
}

TEST(Safetensors, ReadsAndRewritesTheGoldensOfTheCorpus) {
  const auto corpus = corpusFolder();
  if (!corpus) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  const TemporaryFolder folder;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*corpus)) {
    if (std::filesystem::exists(entry.path() / "batches.npz")) {
      const auto batches = readNpz(entry.path() / "batches.npz");
      ASSERT_TRUE(batches.has_value()) << batches.error().message;
      EXPECT_FALSE(batches->empty());
    }
    const auto golden = entry.path() / "golden.safetensors";
    if (!std::filesystem::exists(golden)) continue;
    const auto file = readSafetensors(golden);
    ASSERT_TRUE(file.has_value()) << golden << file.error().message;
    std::map<std::string, TensorView> views;
    for (const auto& [name, tensor] : file->tensors) views.emplace(name, tensor.view());
    ASSERT_TRUE(writeSafetensors(folder.path() / "copy.safetensors", views).has_value());
    EXPECT_TRUE(slurp(folder.path() / "copy.safetensors") == slurp(golden)) << golden;
    ++read;
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace stepscope::testing
