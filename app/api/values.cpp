// Values of the step, and the state.
#include "engine/step/values.h"

#include <fmt/format.h>

#include "app/api/handles.h"

namespace stepscope::api {
namespace {

Result<ValueId> valueOf(const char* what, const Session& session, const char* name) {
  SS_ASSIGN(const std::string text, nameOf(what, name));
  if (!session.built())
    return fail(ErrorCode::kNotFound, fmt::format("{}: nothing was built; expected ss_build before", what));
  const ValueId id = session.findValue(text);
  if (!id) return fail(ErrorCode::kNotFound, fmt::format("{}: no value '{}' in the graph that runs", what, text));
  return id;
}

}  // namespace
}  // namespace stepscope::api

using namespace stepscope;
using namespace stepscope::api;

extern "C" {

ss_error* ss_value(ss_session* session, const char* name, ss_tensor* tensor) {
  return guarded("ss_value", session, [&](Session& s) -> Status {
    SS_ASSIGN(const ValueId id, valueOf("ss_value", s, name));
    SS_ASSIGN(const TensorView view, s.stepper().value(id));
    return giveOutTensor("ss_value", *session, view, tensor);
  });
}

ss_error* ss_edit(ss_session* session, const char* name, const ss_tensor* contents) {
  return guarded("ss_edit", session, [&](Session& s) -> Status {
    SS_ASSIGN(const ValueId id, valueOf("ss_edit", s, name));
    SS_ASSIGN(const TensorView view, viewOf(fmt::format("ss_edit: value '{}'", name), contents));
    return editData(s.stepper(), id, view);
  });
}

ss_error* ss_state(ss_session* session, const char* name, ss_tensor* tensor) {
  return guarded("ss_state", session, [&](Session& s) -> Status {
    SS_ASSIGN(const std::string text, nameOf("ss_state", name));
    const auto state = s.trained().named(true);
    const auto it = state.find(text);
    if (it == state.end())
      return fail(ErrorCode::kNotFound, fmt::format("ss_state: no parameter or optimizer state '{}'", text));
    return giveOutTensor("ss_state", *session, it->second, tensor);
  });
}

ss_error* ss_gradient(ss_session* session, const char* parameter, ss_tensor* tensor) {
  return guarded("ss_gradient", session, [&](Session& s) -> Status {
    SS_ASSIGN(const std::string name, nameOf("ss_gradient", parameter));
    SS_ASSIGN(Tensor gradient, s.trained().gradient(name));
    return giveOutTensor("ss_gradient", *session, session->given.tensor(std::move(gradient)).view(), tensor);
  });
}

ss_error* ss_set_state(ss_session* session, const char* name, const ss_tensor* contents) {
  return guarded("ss_set_state", session, [&](Session& s) -> Status {
    SS_ASSIGN(const std::string text, nameOf("ss_set_state", name));
    SS_ASSIGN(const TensorView view, viewOf(fmt::format("ss_set_state: '{}'", text), contents));
    return s.trained().write(text, view);
  });
}

ss_error* ss_learning_rate(ss_session* session, double* rate) {
  return guarded("ss_learning_rate", session, [&](Session& s) -> Status {
    if (!rate) return invalid("ss_learning_rate: the place for the rate is NULL; expected one");
    *rate = s.learningRate();
    return {};
  });
}

ss_error* ss_set_learning_rate(ss_session* session, double base) {
  return guarded("ss_set_learning_rate", session, [&](Session& s) { return s.setLearningRate(base); });
}

ss_error* ss_save(ss_session* session, const char* path) {
  return guarded("ss_save", session, [&](Session& s) -> Status {
    SS_ASSIGN(const std::string file, nameOf("ss_save", path));
    return s.trained().save(file);
  });
}

ss_error* ss_load(ss_session* session, const char* path, int32_t resume) {
  return guarded("ss_load", session, [&](Session& s) -> Status {
    SS_ASSIGN(const std::string file, nameOf("ss_load", path));
    return s.trained().load(file, resume != 0);
  });
}
}
