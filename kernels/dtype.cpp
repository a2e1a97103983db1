#include "kernels/dtype.h"

#include <array>
#include <string>

namespace stepscope {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<Row, 15> kRows{{
    {DType::kF32, "float32", 4},
    {DType::kU8, "uint8", 1},
    {DType::kI8, "int8", 1},
    {DType::kU16, "uint16", 2},
    {DType::kI16, "int16", 2},
    {DType::kI32, "int32", 4},
    {DType::kI64, "int64", 8},
    {DType::kString, "string", sizeof(std::string)},
    {DType::kBool, "bool", 1},
    {DType::kF16, "float16", 2},
    {DType::kF64, "float64", 8},
    {DType::kU32, "uint32", 4},
    {DType::kU64, "uint64", 8},
    {DType::kBF16, "bfloat16", 2},
    {DType::kUndefined, "undefined", 0},
}};

}  // namespace

std::size_t dtypeSize(DType dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row.size;
  return 0;
}

std::string_view dtypeName(DType dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row.name;
  return "undefined";
}

std::optional<DType> dtypeFromName(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name && row.dtype != DType::kUndefined) return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtypeFromOnnx(int number) {
  for (const Row& row : kRows)
    if (static_cast<int>(row.dtype) == number && row.dtype != DType::kUndefined) return row.dtype;
  return std::nullopt;
}

}  // namespace stepscope
