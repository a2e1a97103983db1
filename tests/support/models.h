// Models that tests run: the bundled samples, and the corpus where it lies beside the source tree.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace stepscope::testing {

struct TestModel {
  std::string name;
  std::filesystem::path model, data;
  std::string loss = "loss";
};

inline void PrintTo(const TestModel& model, std::ostream* out) { *out << model.name; }

inline std::filesystem::path sourceFolder() { return SS_SOURCE_DIR; }

inline std::vector<TestModel> testModels() {
  std::vector<TestModel> models;
  for (const char* sample : {"language_model", "digits"}) {
    const auto folder = sourceFolder() / "app" / "samples" / sample;
    models.push_back({sample, folder / "model.onnx", folder / "batches.npz"});
  }
  const char* shared = std::getenv("STEPSCOPE_SHARED");
  const std::filesystem::path corpus = (shared ? std::filesystem::path(shared) : sourceFolder().parent_path() / "shared") / "corpus";
  for (const char* name : {"mlp", "mlp_accumulate", "branching", "resnet", "gpt2_dropout", "gpt2_lm", "bert_mlm", "llama_lm", "indexing", "activations"}) {
    const auto folder = corpus / name;
    if (std::filesystem::exists(folder / "model.onnx")) models.push_back({name, folder / "model.onnx", folder / "batches.npz"});
  }
  return models;
}

}  // namespace stepscope::testing
