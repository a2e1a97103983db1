// How many tokens of a batch a step was trained on: throughput counts these, and says what the others were.
//
// Tokens are the elements of the first input where that holds token ids. One counts where the loss counts its label; where
// the labels are not one per token, where it is no padding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepscope {

struct TokenCount {
  std::int64_t all = 0;      // in the batch; 0: it has no token ids
  std::int64_t trained = 0;  // of all: on these
  std::int64_t padding = 0;  // of all; 0 where nothing tells

  // Neither trained on nor padding: labels that the loss ignores.
  std::int64_t ignored() const { return all > padding + trained ? all - padding - trained : 0; }
  void add(const TokenCount& other);  // of another step
};

// "30.0 % padding, 12.5 % ignored labels" of all; empty where all are trained on.
std::string untrainedText(const TokenCount& tokens);

class TokenCounter {
 public:
  explicit TokenCounter(std::int64_t all) : all_(all) {}
  // How much of an input is data, as snapshot.InputDensity says. One that has not as many elements tells nothing of tokens.
  void add(std::string_view kind, std::int64_t valid, std::int64_t total);
  TokenCount count() const;

 private:
  std::int64_t all_;
  std::optional<std::int64_t> labels_, data_;  // that count
};

// Of a snapshot.StepRecord.
template <typename Record>
TokenCount tokenCount(const Record& record) {
  TokenCounter counter(record.tokens());
  for (const auto& density : record.densities()) counter.add(density.kind(), density.valid(), density.total());
  return counter.count();
}

}  // namespace stepscope
