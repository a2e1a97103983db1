// A Python pickle as JSON: what `pickle.dump` writes for dicts, lists, tuples, texts, numbers, None and bool (protocols 2 to
// 5).
//
// Nothing is executed and no object is made: an opcode that names a class, a function or a persistent object is an error.
// Tuples become arrays, keys of dicts texts; integers have to fit 64 bits. What the pickle refers to several times is copied
// each time, within a limit on the number of values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "storage/error.h"

namespace stepscope::storage {

inline constexpr std::int64_t kMostPickledValues = 20'000'000;

// `name` is what errors call the file. Errors: kForeign (no pickle, or one with objects: says which), kCorrupt (ends early,
// memo or stack that do not fit), kLimitExceeded.
Result<nlohmann::json> parsePickle(std::string_view bytes, const std::string& name,
                                   std::int64_t mostValues = kMostPickledValues);

}  // namespace stepscope::storage
