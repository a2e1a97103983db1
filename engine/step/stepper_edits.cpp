// What an instruction writes over, and what a person writes: both are kept until the step is committed or thrown away.
#include <fmt/format.h>

#include "engine/ir/low_copy.h"
#include "engine/step/stepper.h"

namespace stepscope {

// State that is written over for the first time in this step is kept for the whole step; the undo log shares that copy.
Status Stepper::saveBeforeWrite(int instruction, bool undoable) {
  State& state = context_.state;
  const Instruction& runs = plan().instructions[static_cast<std::size_t>(instruction)];
  const std::size_t known = state.keptCount();
  for (const int b : runs.outputs) {
    if (b < 0) continue;
    const Buffer& root = plan().buffers[static_cast<std::size_t>(plan().root(b))];
    if (root.home == Home::kState) state.keep(graph().value(root.value).name);
  }
  if (!undoable) return {};
  if (!executor_->conditionsHold(instruction) || (runs.updateEntry && !runOptions().update)) {
    undo_.record(instruction, {}, {});
  } else if (executor_->writtenMemory(instruction, written_)) {
    std::vector<UndoLog::Kept> kept;
    for (std::size_t k = known; k < state.keptCount(); ++k)
      kept.push_back({state.find(state.kept(k).first)->data(), state.kept(k).second});
    undo_.record(instruction, written_, kept);
  } else {
    undo_.clear();
  }
  return {};
}

// Applies the edits that the user made when the next instruction was `instruction`; doing so twice changes nothing.
Status Stepper::applyEdits(int instruction) {
  for (const StepEdit& edit : edits_)
    if (edit.position == instruction) SS_TRY(writeValue(edit.value, edit.contents.view()));
  return {};
}

Status Stepper::writeValue(ValueId id, const TensorView& contents) {
  undo_.clear();
  // State is put back when the step is thrown away, like everything a step writes.
  const Value& named = graph().value(id);
  if (inStep_ && (named.role == ValueRole::kInitializer || named.role == ValueRole::kState)) context_.state.keep(named.name);
  // A parameter, or its next version, which lies over it.
  const int buffer = id ? plan().bufferOfValue[static_cast<std::size_t>(id.index)] : -1;
  const Buffer* root = buffer < 0 ? nullptr : &plan().buffers[static_cast<std::size_t>(plan().root(buffer))];
  const bool isState = root && root->home == Home::kState;
  if (isState) context_.state.writesOver(graph().value(root->value).name);
  SS_TRY(executor_->write(id, contents, position_));
  context_.watched.note(*executor_, id, contents, shownStep(), inStep_);
  if (!isState || lowCopies_.empty()) return {};
  const std::string& parameter = graph().value(root->value).name;
  if (inStep_)
    for (const std::string& copy : context_.state.lowCopiesOf(parameter)) context_.state.keep(copy);
  context_.state.refreshLowCopiesOf(parameter);
  return {};
}

Status Stepper::write(ValueId id, const TensorView& contents) {
  if (const std::string& name = graph().value(id).name; lowCopies_.contains(name))
    return invalid(
        fmt::format("value '{}': a copy that follows '{}'; expected an edit of the parameter", name, sourceOfLowCopy(name)));
  SS_TRY(writeValue(id, contents));
  if (inStep_) edits_.push_back({position_, id, Tensor(contents.dtype, contents.dims, nullptr, contents.data).clone()});
  return {};
}

}  // namespace stepscope
