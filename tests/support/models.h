// Models that tests run: the bundled samples, and the corpus where it lies next to the source tree.
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

// Names of folders of the corpus, those that are there.
inline std::vector<TestModel> corpusCases(const std::vector<std::string>& names) {
  const char* shared = std::getenv("STEPSCOPE_SHARED");
  const std::filesystem::path corpus =
      (shared ? std::filesystem::path(shared) : sourceFolder().parent_path() / "shared") / "corpus";
  std::vector<TestModel> models;
  for (const std::string& name : names)
    if (std::filesystem::exists(corpus / name / "model.onnx"))
      models.push_back({name, corpus / name / "model.onnx", corpus / name / "batches.npz"});
  return models;
}

// The bundled samples.
inline TestModel sample(const std::string& name) {
  const auto folder = sourceFolder() / "app" / "samples" / name;
  return {name, folder / "model.onnx", folder / "batches.npz"};
}
inline TestModel languageModel() { return sample("language_model"); }
inline TestModel digits() { return sample("digits"); }

inline std::vector<TestModel> testModels() {
  std::vector<TestModel> models{languageModel(), digits()};
  for (TestModel& model : corpusCases({"mlp", "mlp_accumulate", "branching", "resnet", "gpt2_dropout", "gpt2_lm", "bert_mlm",
                                       "llama_lm", "indexing", "activations"}))
    models.push_back(std::move(model));
  return models;
}

// The rest of the corpus: what is promised of every model of it is tested with these too.
inline std::vector<TestModel> furtherModels() {
  return corpusCases({"conv1d_lora", "convnext_dynamo", "gelu_forms", "gpt2_dynamo", "mlp_functions", "qwen_dynamo",
                      "resnet_frozen", "roberta_classifier", "vit_classifier"});
}

}  // namespace stepscope::testing
