#include "engine/data/npy_header.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

#include "engine/data/limits.h"
#include "engine/data/shown_name.h"

namespace stepscope {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeName {
  std::string_view descr;  // without the byte order
  DType dtype;
};
constexpr std::array kTypes{TypeName{"f4", DType::kF32}, TypeName{"f8", DType::kF64}, TypeName{"f2", DType::kF16},
                            TypeName{"i8", DType::kI64}, TypeName{"i4", DType::kI32}, TypeName{"i2", DType::kI16},
                            TypeName{"i1", DType::kI8},  TypeName{"u8", DType::kU64}, TypeName{"u4", DType::kU32},
                            TypeName{"u2", DType::kU16}, TypeName{"u1", DType::kU8},  TypeName{"b1", DType::kBool}};

tl::unexpected<Error> corrupt(std::string_view found) {
  return fail(ErrorCode::kCorrupt, fmt::format("array file: {}; expected a .npy file of NumPy", found));
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing else.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<NpyHeader> parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    if (!take('{')) return corrupt("header is no dictionary");
    while (!take('}')) {
      std::string_view key;
      if (!string(key) || !take(':')) return corrupt("header without a key");
      if (key == "descr" && !descr) {
        SS_TRY(readType(header));
        descr = true;
      } else if (key == "fortran_order" && !order) {
        if (!boolean(header.fortranOrder)) return corrupt("fortran_order is neither True nor False");
        order = true;
      } else if (key == "shape" && !shape) {
        SS_TRY(readShape(header));
        shape = true;
      } else {
        return corrupt("header key '" + shownName(key) + "'");
      }
      if (!take(',') && !peek('}')) return corrupt("header without a comma between entries");
    }
    if (!descr || !order || !shape) return corrupt("header without descr, fortran_order or shape");
    return header;
  }

 private:
  void skipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool peek(char c) {
    skipSpace();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    const bool found = peek(c);
    at_ += found ? 1 : 0;
    return found;
  }
  bool string(std::string_view& value) {
    skipSpace();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const auto end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool boolean(bool& value) {
    skipSpace();
    for (const auto& [word, meaning] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        value = meaning;
        return true;
      }
    return false;
  }

  Status readType(NpyHeader& header) {
    std::string_view descr;
    if (!string(descr)) return unsupported("array file: records; expected numbers or bool");
    const char order = descr.empty() ? '?' : descr.front();
    for (const TypeName& type : kTypes)
      if (descr.substr(descr.empty() ? 0 : 1) == type.descr &&
          (order == '<' || order == '=' || (order == '|' && type.descr[1] == '1'))) {
        header.dtype = type.dtype;
        return {};
      }
    return unsupported("array file: element type '" + shownName(descr) +
                       "'; expected bool, (u)int8..64 or float16..64, little-endian");
  }

  Status readShape(NpyHeader& header) {
    if (!take('(')) return corrupt("shape is no tuple");
    while (!take(')')) {
      skipSpace();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc{} || extent < 0) return corrupt("shape with an extent that is no number of 0 or more");
      at_ = static_cast<std::size_t>(end - text_.data());
      header.dims.push_back(extent);
      if (static_cast<std::int64_t>(header.dims.size()) > limits::kTensorRank + 1)
        return fail(ErrorCode::kLimitExceeded,
                    fmt::format("array file: more than {} axes; at most that many are read", limits::kTensorRank + 1));
      if (!take(',') && !peek(')')) return corrupt("shape without a comma");
    }
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::size_t> npyDataOffset(std::span<const std::byte> prefix) {
  if (prefix.size() < 10 || std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) return corrupt("no NumPy magic");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(prefix[i]); };
  const std::size_t major = byte(6);
  if (major < 1 || major > 3) return unsupported(fmt::format("array file: version {}; expected 1, 2 or 3", major));
  if (major == 1) return 10 + (byte(8) | byte(9) << 8);
  if (prefix.size() < 12) return corrupt("truncated header");
  const std::size_t length = byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (static_cast<std::int64_t>(length) > limits::kNpyHeaderBytes)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("array file: header of {} bytes; at most {} are read", length, limits::kNpyHeaderBytes));
  return 12 + length;
}

Result<NpyHeader> parseNpyHeader(std::span<const std::byte> bytes) {
  SS_ASSIGN(const std::size_t offset, npyDataOffset(bytes));
  if (offset > bytes.size()) return corrupt("truncated header");
  const std::size_t begin = static_cast<std::size_t>(bytes[6]) == 1 ? 10 : 12;
  SS_ASSIGN(NpyHeader header, HeaderParser({reinterpret_cast<const char*>(bytes.data()) + begin, offset - begin}).parse());
  const auto count = checkedElementCount(header.dims);
  std::int64_t size = 0;
  if (!count || __builtin_mul_overflow(*count, static_cast<std::int64_t>(dtypeSize(header.dtype)), &size) ||
      size > limits::kTensorBytes)
    return fail(ErrorCode::kLimitExceeded, fmt::format("array file: shape {}; at most {} bytes are one array",
                                                       dimsText(header.dims), limits::kTensorBytes));
  header.dataOffset = offset;
  header.dataBytes = static_cast<std::size_t>(size);
  return header;
}

std::string npyHeaderText(DType dtype, const Dims& dims) {
  std::string_view descr;
  for (const TypeName& type : kTypes)
    if (type.dtype == dtype) descr = type.descr;
  std::string shape;
  for (const std::int64_t extent : dims) shape += fmt::format("{}, ", extent);
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  if (dims.size() == 1) shape.resize(shape.size() - 1);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 dtypeSize(dtype) == 1 ? '|' : '<', descr, shape);
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

Tensor fromFortranOrder(const Tensor& tensor) {
  Tensor result(tensor.dtype(), tensor.dims());
  const std::size_t size = dtypeSize(tensor.dtype());
  const Dims& dims = tensor.dims();
  Dims index(dims.size(), 0);
  Dims strides(dims.size(), 1);
  for (std::size_t axis = 1; axis < dims.size(); ++axis) strides[axis] = strides[axis - 1] * dims[axis - 1];
  const auto* source = static_cast<const char*>(tensor.data());
  auto* target = static_cast<char*>(result.data());
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) from += index[axis] * strides[axis];
    std::memcpy(target + static_cast<std::size_t>(i) * size, source + static_cast<std::size_t>(from) * size, size);
    for (std::size_t axis = dims.size(); axis-- > 0 && ++index[axis] == dims[axis];) index[axis] = 0;
  }
  return result;
}

}  // namespace stepscope
