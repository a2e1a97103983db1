// Graphs that leave the session as files: taken from a kept stage, given the contents that are trained, and without what
// nobody reads.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "engine/train/session.h"

namespace stepscope {

// A copy of the graph at the end of a phase. Error kNotFound: `who`, which asks, and that the phase has not run.
Result<Graph> copyOfStage(const Session& session, std::string_view phase, std::string_view who);

// Initializers of the graph take the contents of the state of their name, in their own type. Returns how many did.
std::size_t takeContents(Graph& graph, const Session& session);

// Removes dead nodes, and the inputs and initializers that are no output and that no node reads. `keep(value)`: initializers
// that stay all the same; null: none.
void dropUnread(Graph& graph, const std::function<bool(const Value&)>& keep = nullptr);

}  // namespace stepscope
