#include "engine/data/safetensors_header.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "engine/data/limits.h"
#include "engine/data/shown_name.h"

namespace stepscope {
namespace {

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array kTypes{TypeName{"F32", DType::kF32},   TypeName{"F64", DType::kF64}, TypeName{"F16", DType::kF16},
                            TypeName{"BF16", DType::kBF16}, TypeName{"I64", DType::kI64}, TypeName{"I32", DType::kI32},
                            TypeName{"I16", DType::kI16},   TypeName{"I8", DType::kI8},   TypeName{"U8", DType::kU8},
                            TypeName{"U16", DType::kU16},   TypeName{"U32", DType::kU32}, TypeName{"U64", DType::kU64},
                            TypeName{"BOOL", DType::kBool}};

// Events of the JSON reader, accepted only where the format has them:
// { "__metadata__": {text: text, …}, name: {"dtype": text, "shape": [n, …], "data_offsets": [n, n]}, … }
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  std::optional<Error> error;

  bool start_object(std::size_t) override {
    if (inArray_ || depth_ > 1) return reject("an object that is too deep");
    if (depth_ == 1 && key_.empty() && !keyed_) return reject("an object without a key");
    ++depth_;
    if (depth_ == 2) fields_ = 0;
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2 && !inMetadata_) {
      if (fields_ != (kDtype | kShape | kOffsets))
        return reject("tensor '" + shownName(name_) + "' without dtype, shape or data_offsets");
      if (offsets_ != 2) return reject("tensor '" + shownName(name_) + "' without two data_offsets");
    }
    return true;
  }
  bool key(std::string& text) override {
    key_ = text;
    keyed_ = true;
    if (depth_ != 1) return true;
    name_ = text;
    inMetadata_ = name_ == "__metadata__";
    offsets_ = 0;
    if (inMetadata_) return seenMetadata_ ? reject("__metadata__ twice") : (seenMetadata_ = true);
    if (header.entries.size() >= 10'000'000) return reject("too many tensors");
    entry_ = nullptr;
    const auto [it, fresh] = header.entries.try_emplace(name_);
    if (!fresh) return reject("tensor '" + shownName(name_) + "' twice");
    entry_ = &it->second;
    return true;
  }
  bool start_array(std::size_t) override {
    if (inArray_ || !inTensor()) return reject("an array in the wrong place");
    if (key_ != "shape" && key_ != "data_offsets") return reject("an array '" + shownName(key_) + "'");
    if (!mark(key_ == "shape" ? kShape : kOffsets)) return reject(shownName(key_) + " twice");
    inArray_ = true;
    return true;
  }
  bool end_array() override {
    inArray_ = false;
    return true;
  }
  bool string(std::string& text) override {
    if (inArray_) return reject("text in an array");
    if (depth_ == 2 && inMetadata_) {
      if (!header.metadata.emplace(key_, text).second) return reject("a metadata key twice");
      return true;
    }
    if (!inTensor() || key_ != "dtype" || !mark(kDtype)) return reject("text in the wrong place");
    for (const TypeName& type : kTypes)
      if (type.name == text) entry_->dtype = type.dtype;
    if (entry_->dtype != DType::kUndefined) return true;
    error = Error{ErrorCode::kUnsupported, "checkpoint: tensor '" + shownName(name_) + "' of type '" + shownName(text) +
                                               "'; expected F16..F64, BF16, I8..I64, U8..U64 or BOOL"};
    return false;
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (!inArray_) return reject("a number in the wrong place");
    if (key_ == "data_offsets") {
      if (offsets_ >= 2) return reject("more than two data_offsets");
      (offsets_++ == 0 ? entry_->begin : entry_->end) = number;
      return true;
    }
    if (number > static_cast<number_unsigned_t>(limits::kTensorBytes)) return reject("an extent that is too large");
    if (static_cast<std::int64_t>(entry_->dims.size()) >= limits::kTensorRank + 1) return reject("a shape of too many axes");
    entry_->dims.push_back(static_cast<std::int64_t>(number));
    return true;
  }
  bool number_integer(number_integer_t) override { return reject("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return reject("a fraction"); }
  bool boolean(bool) override { return reject("a truth value"); }
  bool null() override { return reject("null"); }
  bool binary(binary_t&) override { return reject("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return reject(fmt::format("malformed JSON at byte {} of the header", position));
  }

 private:
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4 };

  bool inTensor() const { return depth_ == 2 && !inMetadata_ && entry_ != nullptr; }
  bool mark(Field field) {
    const bool fresh = (fields_ & field) == 0;
    fields_ |= field;
    return fresh;
  }
  bool reject(const std::string& found) {
    if (!error) error = Error{ErrorCode::kCorrupt, "checkpoint: " + found + "; expected a safetensors header"};
    return false;
  }

  int depth_ = 0;
  bool keyed_ = false;
  bool inArray_ = false;
  bool inMetadata_ = false;
  bool seenMetadata_ = false;
  unsigned fields_ = 0;
  int offsets_ = 0;
  std::string key_, name_;
  SafetensorsEntry* entry_ = nullptr;
};

}  // namespace

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view json) {
  if (json.empty() || json.front() != '{')
    return fail(ErrorCode::kCorrupt, "checkpoint: header does not begin with '{'; expected a safetensors header");
  Handler handler;
  const bool fine = nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  if (handler.error) return tl::make_unexpected(std::move(*handler.error));
  if (!fine) return fail(ErrorCode::kCorrupt, "checkpoint: malformed header; expected a safetensors header");
  return std::move(handler.header);
}

std::string_view safetensorsTypeName(DType dtype) {
  for (const TypeName& type : kTypes)
    if (type.dtype == dtype) return type.name;
  return {};
}

}  // namespace stepscope
