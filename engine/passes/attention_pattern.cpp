#include "engine/passes/attention_pattern.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace stepscope {
namespace {

constexpr std::array<std::string_view, 15> kValues{"q",    "k",    "v",    "s",     "p",    "products", "mask", "keep",
                                                   "drop", "fill", "axes", "share", "mode", "drawn",    "bent"};
constexpr std::array<std::string_view, 2> kNumbers{"scale", "cap"};

}  // namespace

Result<PatternFile> attentionPatterns(const std::string& file) {
  PatternFile patterns({kValues, kNumbers});
  SS_TRY(patterns.add(attentionPatternText(), "attention.pattern"));
  if (file.empty()) return patterns;
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::ifstream in(file, std::ios::binary);
  std::string text(kMost + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto read = static_cast<std::size_t>(in.gcount());
  if (!in.is_open() || in.bad())
    return fail(ErrorCode::kIo, fmt::format("patterns '{}': cannot be read; expected a file", file));
  if (read > kMost)
    return fail(ErrorCode::kIo, fmt::format("patterns '{}': more than {} bytes; expected less", file, kMost));
  text.resize(read);
  SS_TRY(patterns.add(text, fmt::format("patterns '{}'", file)));
  return patterns;
}

}  // namespace stepscope
