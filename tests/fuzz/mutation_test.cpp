// Damaged models and data files: any outcome is fine but a crash, an endless loop or an unsound graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "engine/data/npy.h"
#include "engine/data/safetensors.h"
#include "engine/onnx/inliner.h"
#include "engine/onnx/tensor_pb.h"
#include "engine/onnx/writer.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/yardstick.h"

namespace stepscope::testing {
namespace {

using Random = std::mt19937_64;  // its numbers are fixed by the standard

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : static_cast<std::size_t>(random() % limit); }

void flipBytes(std::string& bytes, Random& random) {
  for (std::size_t i = 1 + below(random, 8); i-- > 0 && !bytes.empty();)
    bytes[below(random, bytes.size())] = static_cast<char>(random());
}
void flipBit(std::string& bytes, Random& random) {
  if (!bytes.empty()) bytes[below(random, bytes.size())] ^= static_cast<char>(1u << below(random, 8));
}
void truncate(std::string& bytes, Random& random) { bytes.resize(below(random, bytes.size())); }
void swapChunks(std::string& bytes, Random& random) {
  const std::size_t size = std::min<std::size_t>(1 + below(random, 64), bytes.size() / 2);
  if (size == 0) return;
  const std::size_t a = below(random, bytes.size() - size), b = below(random, bytes.size() - size);
  for (std::size_t i = 0; i < size; ++i) std::swap(bytes[a + i], bytes[b + i]);
}
void repeatChunk(std::string& bytes, Random& random) {
  const std::size_t begin = below(random, bytes.size()),
                    size = std::min<std::size_t>(1 + below(random, 256), bytes.size() - begin);
  bytes.insert(below(random, bytes.size()), bytes.substr(begin, size));
}
void removeChunk(std::string& bytes, Random& random) { bytes.erase(below(random, bytes.size()), 1 + below(random, 64)); }
// Small numbers are mostly tags, lengths, extents, types and versions.
void editNumber(std::string& bytes, Random& random) {
  for (int tries = 0; tries < 64 && !bytes.empty(); ++tries) {
    char& byte = bytes[below(random, bytes.size())];
    if (static_cast<unsigned char>(byte) > 0x40) continue;
    byte = static_cast<char>(byte + static_cast<char>(below(random, 5)) - 2);
    return;
  }
}
void hugeNumber(std::string& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size());
  const std::string huge = random() % 2 ? std::string("\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
                                        : std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  bytes.replace(at, std::min<std::size_t>(1, bytes.size() - at), huge);
}

constexpr void (*kDamages[])(std::string&, Random&) = {flipBytes,   flipBit,     truncate,   swapChunks,
                                                       repeatChunk, removeChunk, editNumber, hugeNumber};

std::string damaged(std::string bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = 1 + below(random, 3); i-- > 0;) kDamages[below(random, std::size(kDamages))](bytes, random);
  return bytes;
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Outcome {
  int sound = 0, refused = 0;
  double slowest = 0;
};

void tryModel(const std::string& bytes, Outcome& outcome) {
  LoadOptions options;
  options.missingWeights = LoadOptions::MissingWeights::kRandom;
  const double start = cpuSeconds();
  auto model = parseModel(std::as_bytes(std::span(bytes)), "/nonexistent", options);
  if (model) {
    EXPECT_TRUE(model->graph.verify().empty());
    if (inlineFunctions(model->graph, model->functions)) EXPECT_TRUE(model->graph.verify().empty());
    ++outcome.sound;
  } else {
    EXPECT_FALSE(model.error().message.empty());
    ++outcome.refused;
  }
  outcome.slowest = std::max(outcome.slowest, cpuSeconds() - start);
}

// Proto text of a saved training stage, with all of our own metadata.
std::string savedStage() {
  auto model = parse(nestedFunctions(3));
  SS_CHECK(inlineFunctions(model->graph, model->functions).has_value());
  Graph& graph = model->graph;
  const ValueId state = graph.addValue("s", {ValueKind::kTensor, DType::kF32, Shape{2}}, ValueRole::kState);
  graph.mutableValue(state).data = std::make_shared<const Tensor>(DType::kF32, Dims{2});
  graph.stateUpdates.push_back({state, graph.findValue("z")});
  graph.mutableNode(graph.order()[0]).predicates = {{graph.findValue("x"), true}};
  const TemporaryFolder folder;
  SS_CHECK(writeModel(graph, folder.path() / "stage.onnx").has_value());
  return slurp(folder.path() / "stage.onnx");
}

TEST(Mutation, ModelsMadeHereNeverCrash) {
  auto constants = smallModel();
  auto* attribute = addNode(*constants.mutable_graph(), "Constant", {}, {"c"})->add_attribute();
  attribute->set_name("value_floats");
  attribute->set_type(onnx::AttributeProto::FLOATS);
  attribute->add_floats(1);
  const std::vector<std::string> seeds{smallModel().SerializeAsString(), branchingModel().SerializeAsString(),
                                       nestedFunctions(5, 2).SerializeAsString(), constants.SerializeAsString(),
                                       savedStage()};
  Outcome outcome;
  for (std::size_t seed = 0; seed < 2'500; ++seed) tryModel(damaged(seeds[seed % seeds.size()], seed), outcome);
  EXPECT_EQ(outcome.sound + outcome.refused, 2'500);
  EXPECT_GT(outcome.refused, 1'000);
  EXPECT_GT(outcome.sound, 50);  // damage that leaves a model sound is judged too
  EXPECT_LT(outcome.slowest, 10 * slowness());
}

TEST(Mutation, ExportedModelsNeverCrash) {
  const auto models = corpusModels();
  if (models.empty()) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  Outcome outcome;
  for (const auto& path : models) {
    if (std::filesystem::file_size(path) > 700'000) continue;  // the rest has the same shapes of messages
    const std::string bytes = slurp(path);
    for (std::uint64_t seed = 0; seed < 40; ++seed) tryModel(damaged(bytes, seed * 1'000 + bytes.size()), outcome);
  }
  EXPECT_GT(outcome.sound + outcome.refused, 600);
  EXPECT_LT(outcome.slowest, 10 * slowness());
}

TEST(Mutation, DataFilesNeverCrash) {
  const TemporaryFolder folder;
  const Tensor tensor = Tensor::ints(std::vector<std::int64_t>{1, 2, 3});
  ASSERT_TRUE(writeNpy(folder.path() / "a.npy", tensor.view()).has_value());
  ASSERT_TRUE(writeSafetensors(folder.path() / "a.safetensors", {{"a", tensor.view()}, {"b", tensor.view()}}, {{"k", "v"}})
                  .has_value());
  ASSERT_TRUE(writeTensorFile(folder.path() / "a.pb", "a", tensor.view()).has_value());
  const std::string npy = slurp(folder.path() / "a.npy"), safetensors = slurp(folder.path() / "a.safetensors"),
                    proto = slurp(folder.path() / "a.pb");
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    const std::string first = damaged(npy, seed), second = damaged(safetensors, seed), third = damaged(proto, seed);
    refused += readNpy(std::as_bytes(std::span(first))).has_value() ? 0 : 1;
    refused += parseSafetensors(std::as_bytes(std::span(second))).has_value() ? 0 : 1;
    refused += parseTensor(std::as_bytes(std::span(third)), "a.pb").has_value() ? 0 : 1;
  }
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace stepscope::testing
