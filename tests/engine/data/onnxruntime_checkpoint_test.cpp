#include "engine/data/onnxruntime_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

Tensor counted(Dims dims, float from) {
  Tensor tensor(DType::kF32, std::move(dims));
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), from);
  return tensor;
}

OnnxruntimeCheckpoint example() {
  OnnxruntimeCheckpoint checkpoint;
  checkpoint.trained = {
      {"fc.weight", counted({3, 7}, 1)}, {"fc.bias", counted({3}, -1)}, {"none", Tensor(DType::kF32, {0, 4})}};
  checkpoint.frozen = {{"table", counted({40}, 0.5f)}};
  OnnxruntimeCheckpoint::Group group{"group0", 12, 0.25f, {}};
  group.moments["fc.weight"] = {counted({3, 7}, 5), counted({3, 7}, 9)};
  checkpoint.groups.push_back(std::move(group));
  checkpoint.ints["epoch"] = 3;
  checkpoint.floats["best"] = 0.125f;
  checkpoint.texts["name"] = "run \"1\"";
  return checkpoint;
}

void expectSame(const Tensor& a, const Tensor& b, const std::string& name) {
  ASSERT_EQ(a.dtype(), b.dtype()) << name;
  ASSERT_EQ(a.dims(), b.dims()) << name;
  for (std::int64_t i = 0; i < a.elements(); ++i) EXPECT_EQ(a.as<float>()[i], b.as<float>()[i]) << name << " " << i;
}

void expectExample(const OnnxruntimeCheckpoint& back) {
  const OnnxruntimeCheckpoint wanted = example();
  ASSERT_EQ(back.trained.size(), wanted.trained.size());
  ASSERT_EQ(back.frozen.size(), wanted.frozen.size());
  for (const auto& [name, tensor] : wanted.trained) expectSame(back.trained.at(name), tensor, name);
  for (const auto& [name, tensor] : wanted.frozen) expectSame(back.frozen.at(name), tensor, name);
  ASSERT_EQ(back.groups.size(), 1u);
  EXPECT_EQ(back.groups[0].name, "group0");
  EXPECT_EQ(back.groups[0].step, 12);
  EXPECT_EQ(back.groups[0].initialLearningRate, 0.25f);
  const auto& moments = back.groups[0].moments.at("fc.weight");
  ASSERT_EQ(moments.size(), 2u);
  expectSame(moments[1], counted({3, 7}, 9), "second moment");
  EXPECT_EQ(back.ints, wanted.ints);
  EXPECT_EQ(back.floats, wanted.floats);
  EXPECT_EQ(back.texts, wanted.texts);
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(OnnxruntimeCheckpoint, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint";
  ASSERT_TRUE(writeOnnxruntimeCheckpoint(path, example()).has_value());
  EXPECT_EQ(slurp(path).substr(4, 4), "ODTC");
  EXPECT_TRUE(isOnnxruntimeCheckpoint(path));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".data"));
  const auto back = readOnnxruntimeCheckpoint(path);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  expectExample(*back);
}

TEST(OnnxruntimeCheckpoint, LargeTensorsLieInAFileBesideIt) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint";
  ASSERT_TRUE(writeOnnxruntimeCheckpoint(path, example(), 100).has_value());
  // 21 floats twice over as moments, 21 as a parameter, 40 that are frozen; three are too few to go there.
  EXPECT_GE(std::filesystem::file_size(path.string() + ".data"), (21u * 3 + 40u) * 4);
  const auto back = readOnnxruntimeCheckpoint(path);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  expectExample(*back);
  std::filesystem::resize_file(path.string() + ".data", 50);
  const auto cut = readOnnxruntimeCheckpoint(path);
  ASSERT_FALSE(cut.has_value());
  EXPECT_EQ(cut.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(cut.error().message.find("the file has 50"), std::string::npos) << cut.error().message;
}

TEST(OnnxruntimeCheckpoint, NominalOnesHaveNamesAndTypesAlone) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint";
  OnnxruntimeCheckpoint nominal = example();
  nominal.nominal = true;
  nominal.groups.clear();
  ASSERT_TRUE(writeOnnxruntimeCheckpoint(path, nominal).has_value());
  const auto back = readOnnxruntimeCheckpoint(path);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(back->nominal);
  EXPECT_EQ(back->trained.at("fc.weight").dims(), Dims{0});
  EXPECT_EQ(back->trained.at("fc.weight").dtype(), DType::kF32);
}

// Every byte that is damaged alone, and every length: an error or another checkpoint, and never a crash.
TEST(OnnxruntimeCheckpoint, DamagedFilesAreRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint";
  ASSERT_TRUE(writeOnnxruntimeCheckpoint(path, example()).has_value());
  const std::string whole = slurp(path);
  const auto readAs = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return readOnnxruntimeCheckpoint(path);
  };
  for (std::size_t length = 0; length < whole.size() - 200; length += 3)
    EXPECT_FALSE(readAs(whole.substr(0, length)).has_value()) << length;
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += at < 200 ? 1 : 5)
    for (const char bit : {'\x01', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      refused += readAs(damaged).has_value() ? 0 : 1;
    }
  EXPECT_GT(refused, 100);
}

TEST(OnnxruntimeCheckpoint, AnotherVersionAndOtherTypesAreTold) {
  const TemporaryFolder folder;
  OnnxruntimeCheckpoint texts;
  texts.trained["words"] = Tensor::strings({1}, {"a"});
  const auto refused = writeOnnxruntimeCheckpoint(folder.path() / "c", texts);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "c"));
  const auto none = readOnnxruntimeCheckpoint(folder.path() / "none");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace stepscope::testing
