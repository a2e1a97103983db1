// TensorProto to Tensor: raw and typed fields of every dtype that the engine carries.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <span>
#include <string>

#include "engine/onnx/external_data.h"
#include "engine/onnx/problem.h"
#include "kernels/tensor.h"

namespace stepscope {

// The type, dims and size of a tensor, checked before anything is allocated.
struct TensorHeader {
  DType dtype = DType::kUndefined;
  Dims dims;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;  // as stored; 0 for strings
  bool external = false;
  bool fourBit = false;  // int4 or uint4: two elements in a byte of the file, the even one low; int8 or uint8 here
  ExternalRange range;   // when external
  std::span<const std::byte>
      raw;  // raw contents that were left out of the proto (payloads.h); set before the header is read
};

// Everything about `proto` that can be checked without a file: dtype, dims, rank, byte counts of raw or typed data, external
// keys. Problems are added with `where`; false when there is one.
// `fourBit`: int4 and uint4 are taken too.
bool readTensorHeader(const onnx::TensorProto& proto, const std::string& where, ProblemList& problems, TensorHeader& header,
                      bool fourBit = false);

// Four-bit elements as the file has them, header.bytes of them, as a tensor of whole bytes.
Tensor widenFourBit(const TensorHeader& header, const std::byte* packed);

// The contents of a tensor whose header was read without problems and that is not external. Raw data is taken out of `proto`
// to keep the peak of memory low. Bytes of a bool are normalised to 0 or 1.
Tensor takeTensor(onnx::TensorProto& proto, const TensorHeader& header);

// Reads one TensorProto that may not be external (attributes, data files).
Result<Tensor> tensorFromProto(onnx::TensorProto& proto, const std::string& where);

// Bytes of a bool tensor become 0 or 1; others stay.
void normaliseBools(const TensorView& view);

}  // namespace stepscope
