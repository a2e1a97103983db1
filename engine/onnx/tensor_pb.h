// TensorProto files: the input_*.pb and output_*.pb of ONNX test data; and tensors and attributes as protos.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <span>
#include <string>

#include "kernels/attributes.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Reads one TensorProto. Errors: kCorrupt for bytes that are none, kUnsupported for a SequenceProto or OptionalProto (the
// test data of sequence operators), kInvalidArgument when sizes do not agree, kIo, kNotFound.
Result<NamedTensor> readTensorFile(const std::filesystem::path& path);
Result<NamedTensor> parseTensor(std::span<const std::byte> bytes, const std::string& shownAs);

// Writes one TensorProto; whole or not at all.
Status writeTensorFile(const std::filesystem::path& path, const std::string& name, const TensorView& view);

// dims, data_type and raw_data (string_data for strings); the name is the caller's.
void tensorToProto(const TensorView& view, onnx::TensorProto& proto);
void attributeToProto(const std::string& name, const AttrValue& value, onnx::AttributeProto& proto);

}  // namespace stepscope
