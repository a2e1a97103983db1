// The patterns of attention that pass.fuse_attention looks for: the program's own (attention.pattern), and those of a file.
#pragma once

#include <string>
#include <string_view>

#include "engine/passes/pattern_file.h"

namespace stepscope {

// Option that names a file of alternatives.
inline constexpr std::string_view kAttentionPatternsOption = "attention.patterns";

// The text of attention.pattern.
std::string_view attentionPatternText();

// The program's patterns, and behind them the alternatives of `file` where it is not empty. Errors: kIo where it cannot be
// read or has more than a mebibyte; those of PatternFile::add.
Result<PatternFile> attentionPatterns(const std::string& file);

}  // namespace stepscope
