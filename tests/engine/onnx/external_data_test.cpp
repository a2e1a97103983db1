// Weights in files beside the model: read, mapped, shared, missing.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "engine/onnx/reader.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

TEST(ExternalData, IsReadAndSharedByEqualRanges) {
  const TemporaryFolder folder;
  std::string bytes(64 + 36, '\0');
  bytes[66] = '\x80';
  bytes[67] = '\x3f';  // 1.0f at offset 64
  folder.write("weights/w.bin", bytes);
  auto model = smallModel();
  setExternal(*model.mutable_graph()->mutable_initializer(0), "weights/w.bin", "64", "36");
  setExternal(*addFloats(*model.mutable_graph(), "tied", {3, 3}), "weights/w.bin", "64", "36");
  const auto loaded = parse(model, folder.path());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const auto& graph = loaded->graph;
  EXPECT_EQ(graph.value(graph.findValue("w")).data->as<float>()[0], 1.0f);
  EXPECT_EQ(graph.value(graph.findValue("w")).data->data(), graph.value(graph.findValue("tied")).data->data());
  EXPECT_EQ(loaded->externalBytes, 36);
}

// Writes to a mapped weight stay in memory; ranges that do not lie on 64 bytes are read.
TEST(ExternalData, IsMappedWhenTheUserAsksForThat) {
  const TemporaryFolder folder;
  std::string bytes(8192 + 64 + 36 + 36, '\0');
  bytes[8192 + 66] = '\x80';
  bytes[8192 + 67] = '\x3f';  // 1.0f at offset 8256
  const auto file = folder.write("w.bin", bytes);
  auto model = smallModel();
  setExternal(*model.mutable_graph()->mutable_initializer(0), "w.bin", "8256", "36");
  setExternal(*addFloats(*model.mutable_graph(), "odd", {3, 3}), "w.bin", "8292", "36");
  LoadOptions options;
  options.mapWeights = true;
  const auto loaded = parse(model, folder.path(), options);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const auto tensor = [&](const char* name) { return loaded->graph.value(loaded->graph.findValue(name)).data; };
  ASSERT_EQ(tensor("w")->as<float>()[0], 1.0f);
  EXPECT_EQ(tensor("odd")->as<float>()[8], 0.0f);
  const auto mapped = [&](const void* data) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::uintptr_t begin = 0, end = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && reinterpret_cast<std::uintptr_t>(data) >= begin &&
          reinterpret_cast<std::uintptr_t>(data) < end)
        return line.find(file.filename().string()) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(mapped(tensor("w")->data()));
  EXPECT_FALSE(mapped(tensor("odd")->data()));
  tensor("w")->as<float>()[0] = 2;
  std::ifstream after(file, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(after), {}), bytes);
}

TEST(ExternalData, StoresThatLinkModelsToHashedFilesOpen) {
  const TemporaryFolder folder;
  auto model = smallModel();
  setExternal(*model.mutable_graph()->mutable_initializer(0), "w.bin");
  folder.write("blobs/1234", model.SerializeAsString());
  folder.write("blobs/5678", std::string(36, '\0'));
  std::filesystem::create_directories(folder.path() / "snapshot");
  std::filesystem::create_symlink("../blobs/1234", folder.path() / "snapshot/model.onnx");
  std::filesystem::create_symlink("../blobs/5678", folder.path() / "snapshot/w.bin");
  const auto loaded = loadModel(folder.path() / "snapshot/model.onnx");
  EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
}

TEST(ExternalData, MissingWeightsAreListedWhenTheUserAsksForThat) {
  auto model = smallModel();
  setExternal(*model.mutable_graph()->mutable_initializer(0), "absent.bin");
  LoadOptions options;
  options.missingWeights = LoadOptions::MissingWeights::kRandom;
  const auto loaded = parse(model, "/nonexistent", options);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->missingWeights, std::vector<std::string>{"w"});
  EXPECT_EQ(loaded->graph.value(loaded->graph.findValue("w")).data, nullptr);
  LoadOptions graphOnly;
  graphOnly.readWeights = false;
  EXPECT_TRUE(parse(model, "/nonexistent", graphOnly)->missingWeights.empty());
}

}  // namespace
}  // namespace stepscope::testing
