// Parameters in memory of the caller: by name, or all of them in one piece.
#include <fmt/format.h>

#include "app/api/handles.h"

namespace stepscope::api {
namespace {

// Borrowed: the caller keeps it until ss_close.
Tensor borrowed(const TensorView& view) { return Tensor(view.dtype, view.dims, nullptr, view.data); }

// Names and extents of the parameters in their order, as one piece of float32 has them.
Result<std::vector<std::pair<std::string, Dims>>> flatLayout(const char* what, Session& session, bool trainedOnly) {
  if (!session.built())
    return fail(ErrorCode::kNotFound, fmt::format("{}: nothing was built; expected ss_build before", what));
  std::vector<std::pair<std::string, Dims>> layout;
  const auto state = session.trained().named(false);
  for (const ParameterChoice& parameter : session.plans().parameters()) {
    const Value& value = session.plans().valueOf(parameter);
    if (!parameter.trained && (trainedOnly || !isFloating(value.type.dtype))) continue;
    const auto it = state.find(value.name);
    if (it == state.end()) continue;
    if (it->second.dtype != DType::kF32)
      return unsupported(
          fmt::format("{}: parameter '{}' is {}; expected float32 of all", what, value.name, dtypeName(it->second.dtype)));
    layout.emplace_back(value.name, it->second.dims);
  }
  return layout;
}

std::int64_t sizeOf(const std::vector<std::pair<std::string, Dims>>& layout) {
  std::int64_t elements = 0;
  for (const auto& [name, dims] : layout) elements += elementCount(dims);
  return elements;
}

}  // namespace
}  // namespace stepscope::api

using namespace stepscope;
using namespace stepscope::api;

extern "C" {

ss_error* ss_place(ss_session* session, const char* name, const ss_tensor* memory, int32_t take) {
  return guarded("ss_place", session, [&](Session& s) -> Status {
    SS_ASSIGN(const std::string text, nameOf("ss_place", name));
    SS_ASSIGN(const TensorView view, viewOf(fmt::format("ss_place: '{}'", text), memory));
    return s.trained().place({{text, borrowed(view)}}, take != 0);
  });
}

ss_error* ss_flat_size(ss_session* session, int32_t trained_only, int64_t* elements) {
  return guarded("ss_flat_size", session, [&](Session& s) -> Status {
    if (!elements) return invalid("ss_flat_size: the place for the size is NULL; expected one");
    SS_ASSIGN(const auto layout, flatLayout("ss_flat_size", s, trained_only != 0));
    *elements = sizeOf(layout);
    return {};
  });
}

ss_error* ss_place_flat(ss_session* session, int32_t trained_only, const ss_tensor* memory, int32_t take) {
  return guarded("ss_place_flat", session, [&](Session& s) -> Status {
    SS_ASSIGN(const auto layout, flatLayout("ss_place_flat", s, trained_only != 0));
    SS_ASSIGN(const TensorView view, viewOf("ss_place_flat: memory", memory));
    if (view.dtype != DType::kF32 || view.dims != Dims{sizeOf(layout)})
      return invalid(fmt::format("ss_place_flat: memory of {}{}; expected float32[{}]", dtypeName(view.dtype),
                                 dimsText(view.dims), sizeOf(layout)));
    std::map<std::string, Tensor> parts;
    auto* at = static_cast<float*>(view.data);
    for (const auto& [name, dims] : layout) {
      parts[name] = Tensor(DType::kF32, dims, nullptr, at);
      at += elementCount(dims);
    }
    return s.trained().place(std::move(parts), take != 0);
  });
}
}
