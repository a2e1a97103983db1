#include "engine/build/name_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "engine/data/shown_name.h"

namespace stepscope {
namespace {

// What a search costs is the length of the name times that of the pattern.
constexpr std::size_t kMostBytes = 2'000;

}  // namespace

Result<NamePattern> NamePattern::compile(std::string_view option, std::string_view text) {
  if (text.size() > kMostBytes)
    return invalidOption(option, fmt::format("regular expression '{}' of {} bytes; expected at most {}", shownName(text),
                                             text.size(), kMostBytes));
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto pattern = std::make_shared<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (!pattern->ok())
    return invalidOption(option,
                         fmt::format("regular expression '{}' is malformed: {}; expected RE2 syntax, which has neither "
                                     "back-references nor look-around",
                                     shownName(text), pattern->error()));
  return NamePattern(std::move(pattern));
}

bool NamePattern::foundIn(std::string_view name) const {
  return re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *pattern_);
}

}  // namespace stepscope
