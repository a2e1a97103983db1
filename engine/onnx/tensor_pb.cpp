#include "engine/onnx/tensor_pb.h"

#include <fmt/format.h>

#include "engine/data/file.h"
#include "engine/data/limits.h"
#include "engine/onnx/problem.h"
#include "engine/onnx/tensor_reader.h"

namespace stepscope {
namespace {

// SequenceProto and OptionalProto keep their tensors as messages in field 3, which in a TensorProto is a segment (never used
// by anyone); their other fields have wire types that a TensorProto does not know.
bool looksLikeSequence(const onnx::TensorProto& proto) {
  return proto.has_segment() || !proto.GetReflection()->GetUnknownFields(proto).empty();
}

}  // namespace

Result<NamedTensor> parseTensor(std::span<const std::byte> bytes, const std::string& shownAs) {
  const std::string where = "tensor file '" + shownName(shownAs) + "'";
  if (static_cast<std::int64_t>(bytes.size()) > limits::kModelFileBytes)
    return fail(ErrorCode::kLimitExceeded, fmt::format("{}: {} bytes; at most {} can be one protobuf message", where,
                                                       bytes.size(), limits::kModelFileBytes));
  onnx::TensorProto proto;
  const bool parsed = proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (parsed && looksLikeSequence(proto)) return unsupported(where + ": a sequence or optional value; expected a tensor");
  if (!parsed || bytes.empty())
    return fail(ErrorCode::kCorrupt, where + ": the bytes do not parse; expected an ONNX TensorProto");
  SS_ASSIGN(Tensor tensor, tensorFromProto(proto, where));
  return NamedTensor{proto.name(), std::move(tensor)};
}

Result<NamedTensor> readTensorFile(const std::filesystem::path& path) {
  SS_ASSIGN(const auto bytes, readWholeFile(path, limits::kModelFileBytes, "tensor file"));
  return parseTensor(bytes, path.filename().string());
}

Status writeTensorFile(const std::filesystem::path& path, const std::string& name, const TensorView& view) {
  onnx::TensorProto proto;
  tensorToProto(view, proto);
  proto.set_name(name);
  AtomicFile file(path);
  SS_TRY(file.open());
  if (!proto.SerializeToFileDescriptor(file.descriptor())) return file.failure();
  return file.commit();
}

void tensorToProto(const TensorView& view, onnx::TensorProto& proto) {
  proto.set_data_type(static_cast<int>(view.dtype));
  for (const std::int64_t extent : view.dims) proto.add_dims(extent);
  if (view.dtype == DType::kString) {
    for (const auto& text : view.as<std::string>()) proto.add_string_data(text);
    return;
  }
  proto.set_raw_data(static_cast<const char*>(view.data), view.bytes());
}

void attributeToProto(const std::string& name, const AttrValue& value, onnx::AttributeProto& proto) {
  using onnx::AttributeProto;
  proto.set_name(name);
  struct Visitor {
    AttributeProto& proto;
    void operator()(std::int64_t v) const {
      proto.set_type(AttributeProto::INT);
      proto.set_i(v);
    }
    void operator()(float v) const {
      proto.set_type(AttributeProto::FLOAT);
      proto.set_f(v);
    }
    void operator()(const std::string& v) const {
      proto.set_type(AttributeProto::STRING);
      proto.set_s(v);
    }
    void operator()(const std::vector<std::int64_t>& v) const {
      proto.set_type(AttributeProto::INTS);
      proto.mutable_ints()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<float>& v) const {
      proto.set_type(AttributeProto::FLOATS);
      proto.mutable_floats()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<std::string>& v) const {
      proto.set_type(AttributeProto::STRINGS);
      for (const auto& text : v) proto.add_strings(text);
    }
    void operator()(const Tensor& v) const {
      proto.set_type(AttributeProto::TENSOR);
      tensorToProto(v.view(), *proto.mutable_t());
    }
    void operator()(const std::vector<Tensor>& v) const {
      proto.set_type(AttributeProto::TENSORS);
      for (const Tensor& tensor : v) tensorToProto(tensor.view(), *proto.add_tensors());
    }
  };
  std::visit(Visitor{proto}, value);
}

}  // namespace stepscope
