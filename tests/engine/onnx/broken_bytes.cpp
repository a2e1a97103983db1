#include "tests/engine/onnx/broken_models.h"

namespace stepscope::testing {
namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A length-delimited field.
std::string field(int number, const std::string& content) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

std::string repeated(const std::string& item, std::size_t count) {
  std::string bytes;
  bytes.reserve(item.size() * count);
  for (std::size_t i = 0; i < count; ++i) bytes += item;
  return bytes;
}

// A model whose graph holds `content` after that of the small model.
std::string withGraphContent(const std::string& content) {
  auto model = smallModel();
  const std::string graph = model.graph().SerializeAsString() + content;
  model.clear_graph();
  return model.SerializeAsString() + field(7, graph);
}

std::string smallBytes() { return smallModel().SerializeAsString(); }

// If in a branch of If in …
std::string nestedSubgraphs(int depth) {
  std::string graph = field(1, field(4, "Relu"));
  for (int i = 0; i < depth; ++i) graph = field(1, field(4, "If") + field(5, field(1, "then_branch") + field(6, graph)));
  return graph;
}

std::string nestedTypes(int depth) {
  std::string type = field(1, "\x08\x01");
  for (int i = 0; i < depth; ++i) type = field(4, field(1, type));
  return field(11, field(1, "nested") + field(2, type));
}

}  // namespace

void addBrokenBytes(std::vector<BrokenModel>& models) {
  const auto corrupt = [&](const char* name, const char* text, std::function<std::string()> bytes) {
    models.push_back({name, ErrorCode::kCorrupt, text, std::move(bytes)});
  };
  const auto exceeds = [&](const char* name, const char* text, std::function<std::string()> bytes) {
    models.push_back({name, ErrorCode::kLimitExceeded, text, std::move(bytes)});
  };
  corrupt("EmptyFile", "empty", [] { return std::string(); });
  corrupt("Text", "expected an ONNX protobuf file", [] { return std::string("once upon a time there was no model"); });
  corrupt("HtmlPage", "expected an ONNX protobuf file",
          [] { return std::string("<!DOCTYPE html><html><body>404</body></html>"); });
  corrupt("ZipArchive", "expected an ONNX protobuf file", [] { return std::string("PK\x03\x04\x14\0\0\0\x08\0", 10); });
  corrupt("Zeros", "malformed tag", [] { return std::string(1 << 20, '\0'); });
  corrupt("HalfTheFile", "truncated field", [] { return smallBytes().substr(0, smallBytes().size() / 2); });
  corrupt("LastByteMissing", "truncated field", [] { return smallBytes().substr(0, smallBytes().size() - 1); });
  corrupt("EndlessTag", "malformed tag", [] { return std::string(11, '\xff'); });
  corrupt("EndlessNumber", "malformed number", [] { return "\x08" + std::string(11, '\xff'); });
  corrupt("LengthBeyondTheFile", "truncated field", [] { return std::string("\x3a\xff\x7f\x01", 4); });
  corrupt("LengthOf64Bits", "truncated field", [] { return "\x3a" + varint(~std::uint64_t{0}); });
  corrupt("InnerLengthBeyondOuter", "truncated field", [] { return field(7, std::string("\x0a\x05", 2)); });
  corrupt("GroupWireType", "wire type", [] { return smallBytes() + "\x0b\x0c"; });
  corrupt("WireTypeSeven", "wire type", [] { return smallBytes() + "\x0f"; });
  corrupt("FieldNumberZero", "malformed tag", [] { return smallBytes() + std::string("\x02\x00", 2); });
  corrupt("TruncatedFixed64", "truncated field", [] { return smallBytes() + "\x09" + "abc"; });
  corrupt("NoGraph", "no graph", [] {
    auto model = smallModel();
    model.clear_graph();
    return model.SerializeAsString();
  });

  exceeds("AttributeBomb", "inputs, outputs and attributes of one node",
          [] { return withGraphContent(field(1, field(4, "Relu") + repeated(field(5, ""), 10'000'000))); });
  exceeds("InputNameBomb", "inputs, outputs and attributes of one node",
          [] { return withGraphContent(field(1, field(4, "Sum") + repeated(field(1, ""), 10'000'000))); });
  exceeds("ManyNodesWithManyInputs", "bytes of memory",
          [] { return withGraphContent(repeated(field(1, field(4, "Sum") + repeated(field(1, ""), 60'000)), 40)); });
  exceeds("NodeBomb", "bytes of memory", [] { return withGraphContent(repeated(field(1, ""), 8'000'000)); });
  exceeds("InitializerBomb", "bytes of memory", [] { return withGraphContent(repeated(field(5, ""), 4'000'000)); });
  exceeds("ValueInfoBomb", "bytes of memory", [] { return withGraphContent(repeated(field(13, ""), 4'000'000)); });
  exceeds("MetadataBomb", "bytes of memory", [] { return smallBytes() + repeated(field(14, ""), 4'000'000); });
  exceeds("UnknownFieldBomb", "bytes of memory", [] { return smallBytes() + repeated(field(99, ""), 4'000'000); });
  exceeds("OpsetBomb", "bytes of memory", [] { return smallBytes() + repeated(field(8, ""), 4'000'000); });
  exceeds("StringElementBomb", "bytes of memory",
          [] { return withGraphContent(field(5, repeated(field(6, ""), 4'000'000))); });
  exceeds("DimensionBomb", "dimensions of a shape",
          [] { return withGraphContent(field(11, field(2, field(1, field(2, repeated(field(1, ""), 1'000'000)))))); });
  exceeds("TensorOfThousandAxes", "dimensions of a tensor",
          [] { return withGraphContent(field(5, repeated("\x08\x01", 1'000))); });
  exceeds("SubgraphsFortyDeep", "nested subgraphs", [] { return withGraphContent(nestedSubgraphs(40)); });
  exceeds("SubgraphsThousandDeep", "nested", [] { return withGraphContent(nestedSubgraphs(1'000)); });
  exceeds("TypesFortyDeep", "nested types", [] { return withGraphContent(nestedTypes(40)); });
  exceeds("NameOfSeventyThousandBytes", "bytes in a name",
          [] { return withGraphContent(field(1, field(4, "Relu") + field(3, std::string(70'000, 'n')))); });
  exceeds("DocStringOfSeventeenMegabytes", "bytes in a text",
          [] { return withGraphContent(field(10, std::string(17 << 20, 'd'))); });
  exceeds("StringElementOfSeventeenMegabytes", "bytes in a string element",
          [] { return withGraphContent(field(5, field(6, std::string(17 << 20, 's')))); });
  exceeds("TenThousandAndOneFunctions", "functions",
          [] { return smallBytes() + repeated(field(25, field(1, "f")), 10'001); });
}

}  // namespace stepscope::testing
