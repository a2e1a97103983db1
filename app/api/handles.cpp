#include "app/api/handles.h"

#include <fmt/format.h>

#include <cstring>

#include "app/version.h"
#include "engine/snapshot/utf8.h"
#include "engine/wire/border.h"

namespace stepscope::api {
namespace {

int codeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return SS_INVALID_ARGUMENT;
    case ErrorCode::kNotFound: return SS_NOT_FOUND;
    case ErrorCode::kUnsupported: return SS_UNSUPPORTED;
    case ErrorCode::kLimitExceeded: return SS_LIMIT_EXCEEDED;
    case ErrorCode::kCorrupt: return SS_CORRUPT;
    case ErrorCode::kOutOfMemory: return SS_OUT_OF_MEMORY;
    case ErrorCode::kIo: return SS_IO;
    case ErrorCode::kCancelled: return SS_CANCELLED;
    case ErrorCode::kInternal: return SS_INTERNAL;
  }
  return SS_INTERNAL;
}

// Of an error that there is no memory for.
ss_error noMemory{{ErrorCode::kOutOfMemory, "the system gave no more memory"}};

ss_error* errorOf(Error error) {
  try {
    error.message = toUtf8(error.message);
    return new ss_error{std::move(error)};
  } catch (const std::bad_alloc&) {
    return &noMemory;
  }
}

}  // namespace

ss_error* guarded(const char* what, const std::function<Status()>& work) {
  Status status = caught(what, work);
  return status ? nullptr : errorOf(std::move(status).error());
}

ss_error* guarded(const char* what, ss_session* session, const std::function<Status(Session&)>& work) {
  if (!session) return guarded(what, [&] { return invalid(fmt::format("{}: the session is NULL; expected one", what)); });
  return guarded(what, [&]() -> Status {
    const auto attached = session->attached;  // it may become another one
    const AttachedLoop::Inside inside(loopOf(attached));
    session->given.clear();
    return work(*session->session);
  });
}

Result<std::string> nameOf(const char* what, const char* text) {
  if (!text) return invalid(fmt::format("{}: a text is NULL; expected UTF-8 that ends with 0", what));
  if (toUtf8(text) != text) return invalid(fmt::format("{}: '{}' is not UTF-8; expected that", what, toUtf8(text)));
  return std::string(text);
}

Result<std::vector<std::string>> namesOf(const char* what, const char* const* texts, std::size_t count) {
  if (!texts && count > 0) return invalid(fmt::format("{}: the list is NULL; expected {} texts", what, count));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    SS_ASSIGN(std::string name, nameOf(what, texts[i]));
    names.push_back(std::move(name));
  }
  return names;
}

Status giveOutTensor(const char* what, ss_session& session, const TensorView& view, ss_tensor* to) {
  return giveOutTensor(what, session.given, view, to);
}

Status giveOutTensor(const char* what, Given& given, const TensorView& view, ss_tensor* to) {
  if (view.dtype == DType::kString) return unsupported(fmt::format("{}: its elements are strings; expected numbers", what));
  return giveOut(what,
                 ss_tensor{.size = sizeof(ss_tensor),
                           .dtype = static_cast<std::int32_t>(view.dtype),
                           .dims = given.numbers(view.dims),
                           .rank = view.dims.size(),
                           .data = view.data,
                           .bytes = view.bytes()},
                 to);
}

Result<TensorView> viewOf(const std::string& what, const ss_tensor* tensor) {
  if (!tensor) return invalid(fmt::format("{}: the tensor is NULL; expected one", what));
  if (tensor->size < sizeof(ss_tensor))
    return invalid(fmt::format("{}: .size is {}; expected sizeof(ss_tensor), {}", what, tensor->size, sizeof(ss_tensor)));
  const auto dtype = static_cast<DType>(tensor->dtype);
  if (dtype == DType::kString || dtypeSize(dtype) == 0)
    return invalid(fmt::format("{}: element type {}; expected one of stepscope.h, without strings", what, tensor->dtype));
  if (tensor->rank > 0 && !tensor->dims) return invalid(fmt::format("{}: .dims is NULL with rank {}", what, tensor->rank));
  if (tensor->rank > 64) return invalid(fmt::format("{}: rank {}; expected at most 64", what, tensor->rank));
  TensorView view{const_cast<void*>(tensor->data), dtype, Dims(tensor->dims, tensor->dims + tensor->rank)};
  const auto elements = checkedElementCount(view.dims);
  if (!elements)
    return tl::make_unexpected(Error{elements.error().code, fmt::format("{}: {}", what, elements.error().message)});
  if (view.bytes() != tensor->bytes || (!tensor->data && tensor->bytes > 0))
    return invalid(fmt::format("{}: {} bytes{}; {}{} takes {}", what, tensor->bytes, tensor->data ? "" : " at NULL",
                               dtypeName(dtype), dimsText(view.dims), view.bytes()));
  return view;
}

Result<std::map<std::string, Tensor>> arraysOf(const char* what, const std::vector<std::string>& names,
                                               const ss_tensor* const* tensors, bool borrow) {
  if (!tensors && !names.empty())
    return invalid(fmt::format("{}: the list of tensors is NULL; expected {}", what, names.size()));
  std::map<std::string, Tensor> arrays;
  for (std::size_t i = 0; i < names.size(); ++i) {
    SS_ASSIGN(const TensorView view, viewOf(fmt::format("{}: array '{}'", what, names[i]), tensors[i]));
    const Tensor array(view.dtype, view.dims, nullptr, view.data);
    if (!arrays.emplace(names[i], borrow ? array : array.clone()).second)
      return invalid(fmt::format("{}: array '{}' is given twice; expected one of each", what, names[i]));
  }
  return arrays;
}

}  // namespace stepscope::api

extern "C" {

uint32_t ss_api_version(void) { return SS_API_MAJOR << 16 | SS_API_MINOR; }
const char* ss_version(void) { return stepscope::versionText(); }

int32_t ss_error_code(const ss_error* error) { return error ? stepscope::api::codeOf(error->error.code) : 0; }
const char* ss_error_message(const ss_error* error) { return error ? error->error.message.c_str() : ""; }
void ss_error_free(ss_error* error) {
  if (error != &stepscope::api::noMemory) delete error;
}
}
