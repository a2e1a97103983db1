#include "engine/onnx/tensor_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <set>
#include <string>

#include "engine/data/limits.h"
#include "kernels/onnx_type_text.h"

namespace stepscope {
namespace {

enum class Field { kFloat, kInt32, kInt64, kUint64, kDouble, kString, kCount };

constexpr const char* kFieldNames[] = {"float_data",  "int32_data",  "int64_data",
                                       "uint64_data", "double_data", "string_data"};

// Where onnx.proto puts the elements of each dtype.
Field typedField(DType dtype) {
  switch (dtype) {
    case DType::kF32: return Field::kFloat;
    case DType::kI64: return Field::kInt64;
    case DType::kU32:
    case DType::kU64: return Field::kUint64;
    case DType::kF64: return Field::kDouble;
    case DType::kString: return Field::kString;
    default: return Field::kInt32;
  }
}

int fieldSize(const onnx::TensorProto& proto, Field field) {
  switch (field) {
    case Field::kFloat: return proto.float_data_size();
    case Field::kInt32: return proto.int32_data_size();
    case Field::kInt64: return proto.int64_data_size();
    case Field::kUint64: return proto.uint64_data_size();
    case Field::kDouble: return proto.double_data_size();
    case Field::kString: return proto.string_data_size();
    case Field::kCount: break;
  }
  return 0;
}

bool parseNumber(const std::string& text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0;
}

bool readRange(const onnx::TensorProto& proto, const std::string& where, ProblemList& problems, ExternalRange& range) {
  bool fine = true;
  bool located = false;
  std::set<std::string> seen;
  for (const auto& entry : proto.external_data()) {
    std::int64_t number = 0;
    if (!seen.insert(entry.key()).second) {
      problems.add(ErrorCode::kInvalidArgument, where,
                   fmt::format("key '{}' of external data twice; expected it once", shownName(entry.key())));
      fine = false;
    } else if (entry.key() == "location") {
      range.location = entry.value();
      located = true;
    } else if (entry.key() == "offset" || entry.key() == "length") {
      if (!parseNumber(entry.value(), number)) {
        problems.add(
            ErrorCode::kInvalidArgument, where,
            fmt::format("external {} '{}'; expected a number of bytes, 0 or more", entry.key(), shownName(entry.value())));
        fine = false;
      } else if (entry.key() == "offset") {
        range.offset = number;
      } else {
        range.length = number;
      }
    } else if (entry.key() != "checksum" && entry.key() != "basepath") {
      problems.add(ErrorCode::kInvalidArgument, where,
                   fmt::format("unknown key '{}' of external data; expected location, offset, length or checksum",
                               shownName(entry.key())));
      fine = false;
    }
  }
  if (!located) {
    problems.add(ErrorCode::kInvalidArgument, where, "external data without a location; expected a file name");
    fine = false;
  }
  return fine;
}

bool checkStrings(const onnx::TensorProto& proto, const std::string& where, ProblemList& problems) {
  std::int64_t total = 0;
  for (const auto& text : proto.string_data()) total += static_cast<std::int64_t>(text.size());
  if (total <= limits::kStringTensorBytes) return true;
  problems.add(ErrorCode::kLimitExceeded, where,
               fmt::format("{} bytes of strings; at most {} are read", total, limits::kStringTensorBytes));
  return false;
}

bool checkContents(const onnx::TensorProto& proto, const std::string& where, ProblemList& problems,
                   const TensorHeader& header) {
  const Field wanted = typedField(header.dtype);
  const std::size_t raw = header.raw.empty() ? proto.raw_data().size() : header.raw.size();
  int used = 0;
  for (int i = 0; i < static_cast<int>(Field::kCount); ++i) {
    if (fieldSize(proto, static_cast<Field>(i)) == 0) continue;
    ++used;
    if (static_cast<Field>(i) != wanted) {
      problems.add(ErrorCode::kInvalidArgument, where,
                   fmt::format("{} tensor with {}; expected raw_data or {}", dtypeName(header.dtype), kFieldNames[i],
                               kFieldNames[static_cast<int>(wanted)]));
      return false;
    }
  }
  if (header.external) {
    if (used == 0 && raw == 0) return true;
    problems.add(ErrorCode::kInvalidArgument, where, "both external and inline data; expected one of them");
    return false;
  }
  if (raw > 0) {
    if (used > 0) {
      problems.add(ErrorCode::kInvalidArgument, where, "both raw_data and typed data; expected one of them");
      return false;
    }
    if (header.dtype == DType::kString) {
      problems.add(ErrorCode::kInvalidArgument, where, "string tensor with raw_data; expected string_data");
      return false;
    }
    if (static_cast<std::int64_t>(raw) != header.bytes) {
      problems.add(ErrorCode::kInvalidArgument, where,
                   fmt::format("{} bytes of raw_data; expected {} for {}{}", raw, header.bytes, dtypeName(header.dtype),
                               dimsText(header.dims)));
      return false;
    }
    return true;
  }
  const std::int64_t entries = header.fourBit ? header.bytes : header.elements;
  if (fieldSize(proto, wanted) != entries) {
    problems.add(
        ErrorCode::kInvalidArgument, where,
        fmt::format("{} elements in {}; expected {} for {}{}", fieldSize(proto, wanted),
                    kFieldNames[static_cast<int>(wanted)], entries, dtypeName(header.dtype), dimsText(header.dims)));
    return false;
  }
  return header.dtype != DType::kString || checkStrings(proto, where, problems);
}

// Numbers of onnx.TensorProto.DataType that came after the classes of this build.
constexpr int kOnnxU4 = 21, kOnnxI4 = 22;

template <typename Target, typename Source>
void copyAs(const Source& source, const Tensor& tensor) {
  auto* out = static_cast<Target*>(tensor.data());
  for (int i = 0; i < source.size(); ++i) out[i] = static_cast<Target>(source.Get(i));
}

void copyTyped(const onnx::TensorProto& proto, const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kF32: return copyAs<float>(proto.float_data(), tensor);
    case DType::kF64: return copyAs<double>(proto.double_data(), tensor);
    case DType::kI64: return copyAs<std::int64_t>(proto.int64_data(), tensor);
    case DType::kU64: return copyAs<std::uint64_t>(proto.uint64_data(), tensor);
    case DType::kU32: return copyAs<std::uint32_t>(proto.uint64_data(), tensor);
    case DType::kI32: return copyAs<std::int32_t>(proto.int32_data(), tensor);
    case DType::kI16: return copyAs<std::int16_t>(proto.int32_data(), tensor);
    case DType::kI8: return copyAs<std::int8_t>(proto.int32_data(), tensor);
    case DType::kU8: return copyAs<std::uint8_t>(proto.int32_data(), tensor);
    case DType::kBool:
      for (int i = 0; i < proto.int32_data_size(); ++i)
        static_cast<std::uint8_t*>(tensor.data())[i] = proto.int32_data(i) != 0;
      return;
    // Half floats are stored as their bit patterns.
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16: return copyAs<std::uint16_t>(proto.int32_data(), tensor);
    case DType::kString:
      for (int i = 0; i < proto.string_data_size(); ++i) static_cast<std::string*>(tensor.data())[i] = proto.string_data(i);
      return;
    case DType::kUndefined: return;
  }
}

}  // namespace

bool readTensorHeader(const onnx::TensorProto& proto, const std::string& where, ProblemList& problems, TensorHeader& header,
                      bool fourBit) {
  header.fourBit = fourBit && (proto.data_type() == kOnnxU4 || proto.data_type() == kOnnxI4);
  const auto dtype = header.fourBit ? std::optional(proto.data_type() == kOnnxI4 ? DType::kI8 : DType::kU8)
                                    : dtypeFromOnnx(proto.data_type());
  if (!dtype) {
    problems.add(
        ErrorCode::kUnsupported, where,
        fmt::format("element type {}; expected one of float32, float64, float16, bfloat16, (u)int8..64, bool, string",
                    onnxTypeText(proto.data_type())));
    return false;
  }
  header.dtype = *dtype;
  if (proto.dims_size() > limits::kTensorRank) {
    problems.add(ErrorCode::kLimitExceeded, where,
                 fmt::format("rank {}; at most {} axes are supported", proto.dims_size(), limits::kTensorRank));
    return false;
  }
  header.dims.assign(proto.dims().begin(), proto.dims().end());
  const auto count = checkedElementCount(header.dims);
  if (!count) {
    problems.add(ErrorCode::kInvalidArgument, where,
                 fmt::format("dims {}; expected extents of 0 or more whose product fits in 63 bits", dimsText(header.dims)));
    return false;
  }
  header.elements = *count;
  const auto size = dtype == DType::kString ? std::int64_t{1} : static_cast<std::int64_t>(dtypeSize(*dtype));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(*count, size, &bytes) || bytes > limits::kTensorBytes) {
    problems.add(ErrorCode::kLimitExceeded, where,
                 fmt::format("dims {} of {}; at most {} bytes are one tensor", dimsText(header.dims), dtypeName(*dtype),
                             limits::kTensorBytes));
    return false;
  }
  header.bytes = dtype == DType::kString ? 0 : header.fourBit ? (bytes + 1) / 2 : bytes;
  if (proto.has_segment()) {
    problems.add(ErrorCode::kUnsupported, where, "tensor in segments; expected one whole tensor");
    return false;
  }
  header.external = proto.data_location() == onnx::TensorProto_DataLocation_EXTERNAL;
  if (header.external) {
    if (dtype == DType::kString) {
      problems.add(ErrorCode::kInvalidArgument, where, "string tensor in external data; expected string_data");
      return false;
    }
    if (!readRange(proto, where, problems, header.range)) return false;
  }
  return checkContents(proto, where, problems, header);
}

Tensor widenFourBit(const TensorHeader& header, const std::byte* packed) {
  Tensor tensor(header.dtype, header.dims);
  auto* const out = static_cast<std::uint8_t*>(tensor.data());
  for (std::int64_t i = 0; i < header.elements; ++i) {
    const auto byte = static_cast<std::uint8_t>(packed[i / 2]);
    const auto code = static_cast<std::uint8_t>(i % 2 == 0 ? byte & 0xF : byte >> 4);
    out[i] = header.dtype == DType::kI8 && code > 7 ? static_cast<std::uint8_t>(code | 0xF0) : code;
  }
  return tensor;
}

Tensor takeTensor(onnx::TensorProto& proto, const TensorHeader& header) {
  if (header.fourBit) {
    if (!header.raw.empty()) return widenFourBit(header, header.raw.data());
    std::string packed;
    if (!proto.raw_data().empty())
      packed.assign(proto.raw_data());
    else
      for (const std::int32_t byte : proto.int32_data()) packed.push_back(static_cast<char>(byte));
    return widenFourBit(header, reinterpret_cast<const std::byte*>(packed.data()));
  }
  Tensor tensor(header.dtype, header.dims);
  if (!header.raw.empty()) {
    std::memcpy(tensor.data(), header.raw.data(), header.raw.size());
    normaliseBools(tensor.view());
  } else if (!proto.raw_data().empty()) {
    std::memcpy(tensor.data(), proto.raw_data().data(), proto.raw_data().size());
    normaliseBools(tensor.view());
    delete proto.release_raw_data();
  } else {
    copyTyped(proto, tensor);
  }
  return tensor;
}

Result<Tensor> tensorFromProto(onnx::TensorProto& proto, const std::string& where) {
  ProblemList problems;
  TensorHeader header;
  if (!readTensorHeader(proto, where, problems, header)) return tl::make_unexpected(problems.toError());
  if (header.external) return unsupported(where + ": external data; expected the elements in the file itself");
  return takeTensor(proto, header);
}

void normaliseBools(const TensorView& view) {
  if (view.dtype != DType::kBool) return;
  auto* bytes = static_cast<std::uint8_t*>(view.data);
  for (std::size_t i = 0; i < view.bytes(); ++i) bytes[i] = bytes[i] != 0;
}

}  // namespace stepscope
