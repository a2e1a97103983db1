// A regular expression of a user that is searched in names from a file.
//
// RE2: its time is linear in the length of a name, its memory is bounded, and no name, however long, takes more stack. The
// price is that back-references and look-around do not exist.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/status.h"

namespace re2 {
class RE2;
}

namespace stepscope {

class NamePattern {
 public:
  // `option` names the option in the error (kInvalidArgument).
  static Result<NamePattern> compile(std::string_view option, std::string_view text);

  // Anywhere in the name.
  bool foundIn(std::string_view name) const;

 private:
  explicit NamePattern(std::shared_ptr<const re2::RE2> pattern) : pattern_(std::move(pattern)) {}
  std::shared_ptr<const re2::RE2> pattern_;
};

}  // namespace stepscope
