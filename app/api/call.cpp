// The model as a function with a backward pass.
#include <fmt/format.h>

#include "app/api/handles.h"

using namespace stepscope;
using namespace stepscope::api;

namespace {

// guarded(), for a call that is not NULL.
ss_error* guardedCall(const char* what, ss_call* call, const std::function<Status(ModelCall&)>& work) {
  return guarded(what, [&]() -> Status {
    if (!call) return invalid(fmt::format("{}: the call is NULL; expected one", what));
    const AttachedLoop::Inside inside(loopOf(call->attached));
    return work(*call->call);
  });
}

}  // namespace

extern "C" {

ss_error* ss_differentiate(ss_session* session, const char* const* outputs, size_t output_count, const char* const* inputs,
                           size_t input_count) {
  return guarded("ss_differentiate", session, [&](Session& s) -> Status {
    FunctionRequest request;
    SS_ASSIGN(request.outputs, namesOf("ss_differentiate: output", outputs, output_count));
    SS_ASSIGN(request.inputs, namesOf("ss_differentiate: input", inputs, input_count));
    session->function = s.function(std::move(request));
    session->function->setWatcher(session->attached.get());
    return {};
  });
}

ss_error* ss_forward(ss_session* session, const char* const* names, const ss_tensor* const* tensors, size_t count,
                     uint64_t seed, ss_call** call) {
  return guarded("ss_forward", session, [&](Session&) -> Status {
    if (!call) return invalid("ss_forward: the place for the call is NULL; expected one");
    *call = nullptr;
    if (!session->function)
      return fail(ErrorCode::kNotFound, "ss_forward: the model is no function yet; expected ss_differentiate before");
    SS_ASSIGN(const auto inputs, namesOf("ss_forward: name", names, count));
    SS_ASSIGN(const auto arrays, arraysOf("ss_forward", inputs, tensors, true));
    auto made = std::make_unique<ss_call>();
    made->attached = session->attached;
    SS_ASSIGN(made->call, session->function->forward(arrays, seed));
    *call = made.release();
    return {};
  });
}

ss_error* ss_call_output(ss_call* call, const char* name, ss_tensor* tensor) {
  return guardedCall("ss_call_output", call, [&](ModelCall& c) -> Status {
    SS_ASSIGN(const std::string output, nameOf("ss_call_output", name));
    SS_ASSIGN(Tensor contents, c.output(output));
    return giveOutTensor("ss_call_output", call->given, call->given.tensor(std::move(contents)).view(), tensor);
  });
}

ss_error* ss_backward(ss_call* call, const char* const* names, const ss_tensor* const* tensors, size_t count) {
  return guardedCall("ss_backward", call, [&](ModelCall& c) -> Status {
    SS_ASSIGN(const auto outputs, namesOf("ss_backward: name", names, count));
    SS_ASSIGN(const auto gradients, arraysOf("ss_backward", outputs, tensors, true));
    return c.backward(gradients);
  });
}

ss_error* ss_call_gradient(ss_call* call, const char* name, ss_tensor* tensor, int32_t* present) {
  return guardedCall("ss_call_gradient", call, [&](ModelCall& c) -> Status {
    if (!present) return invalid("ss_call_gradient: the place for `present` is NULL; expected one");
    SS_ASSIGN(const std::string text, nameOf("ss_call_gradient", name));
    SS_ASSIGN(auto gradient, c.gradient(text));
    *present = !gradient ? 0 : gradient->alone ? SS_PRESENT_ALONE : SS_PRESENT;
    if (!gradient) return {};
    return giveOutTensor("ss_call_gradient", call->given, call->given.tensor(std::move(gradient->contents)).view(), tensor);
  });
}

void ss_call_free(ss_call* call) {
  if (!call) return;
  const auto attached = call->attached;
  const AttachedLoop::Inside inside(loopOf(attached));
  delete call;
}
}
