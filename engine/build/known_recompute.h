// The choice of a recompute budget: found by planning the step a dozen times, and kept in the build cache.
#pragma once

#include <optional>
#include <string>

#include "engine/build/build_cache.h"
#include "engine/build/builder.h"
#include "engine/recompute/choose.h"

namespace stepscope {

// What the choice for a specialised variant depends on, each by its content: version, model, signature, the recompute
// options, and of the other options the graph of the step that they make of the model.
CacheQuestion recomputeQuestion(const Variant& variant);

// The text of an entry, and back; nothing where it is none.
std::string choiceText(const KnownChoice& choice);
std::optional<KnownChoice> choiceFrom(const std::string& text);

}  // namespace stepscope
