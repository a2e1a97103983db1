#include "engine/plan/reuse.h"

#include <cstdint>
#include <iterator>
#include <map>

#include "kernels/index.h"

namespace stepscope {
namespace {

// Walks the instructions and knows whose contents lie where. Contents are named by the buffer that was written; views of it
// have the same.
class Walk {
 public:
  explicit Walk(const ExecutionPlan& plan)
      : plan_(plan), contents_(plan.buffers.size(), -1), outside_(plan.buffers.size(), -1), found_(plan.buffers.size()) {}

  std::vector<Overwritten> run() {
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) step(static_cast<int>(i));
    std::vector<Overwritten> result(plan_.buffers.size());
    for (std::size_t b = 0; b < result.size(); ++b)
      if (contents_[b] >= 0) result[b] = found_[at(contents_[b])];
    return result;
  }

 private:
  struct Range {
    std::int64_t end = 0;
    int contents = -1;
  };
  using Ranges = std::map<std::int64_t, Range>;  // by offset

  void step(int i) {
    const Instruction& instruction = plan_.instructions[at(i)];
    if (instruction.view) {
      const int in = instruction.inputs[0], out = instruction.outputs[0];
      if (out >= 0) contents_[at(out)] = in >= 0 && contents_[at(in)] >= 0 ? contents_[at(in)] : plan_.root(out);
      return;
    }
    for (const int out : instruction.outputs)
      if (out >= 0) write(out, i);
    if (const int workspace = plan_.workspaceOf(at(i)); workspace >= 0) write(workspace, i);
  }

  void write(int buffer, int i) {
    contents_[at(buffer)] = buffer;
    const Buffer& b = plan_.buffers[at(buffer)];
    if (b.home != Home::kArena) {
      const int root = plan_.root(buffer);
      int& there = outside_[at(root)];
      if (there < 0) there = root;
      if (there != buffer) lose(there, buffer, i);
      there = buffer;
      return;
    }
    const std::int64_t offset = plan_.offsets[at(buffer)];
    if (b.bytes > 0) cover(b.space == plan_.space ? arena_ : hostArena_, offset, offset + b.bytes, buffer, i);
  }

  void lose(int contents, int by, int i) {
    if (found_[at(contents)].instruction < 0) found_[at(contents)] = {i, by};
  }

  // Whoever has contents in [begin, end) loses them to `buffer`.
  void cover(Ranges& arena, std::int64_t begin, std::int64_t end, int buffer, int i) {
    auto it = arena.upper_bound(begin);
    if (it != arena.begin() && std::prev(it)->second.end > begin) --it;
    while (it != arena.end() && it->first < end) {
      const Range range = it->second;
      const std::int64_t from = it->first;
      if (range.contents != buffer) lose(range.contents, buffer, i);
      it = arena.erase(it);
      if (from < begin) arena.emplace(from, Range{begin, range.contents});
      if (range.end > end) it = arena.emplace(end, Range{range.end, range.contents}).first;
    }
    arena[begin] = {end, buffer};
  }

  const ExecutionPlan& plan_;
  std::vector<int> contents_;  // by buffer: whose contents it has
  std::vector<int> outside_;   // by root outside the arena: whose contents lie there
  Ranges arena_, hostArena_;
  std::vector<Overwritten> found_;  // by contents
};

}  // namespace

std::vector<Overwritten> overwritten(const ExecutionPlan& plan) { return Walk(plan).run(); }

}  // namespace stepscope
