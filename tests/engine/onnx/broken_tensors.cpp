#include <sys/stat.h>

#include "tests/engine/onnx/broken_models.h"

namespace stepscope::testing {
namespace {

using Change = std::function<void(onnx::TensorProto&)>;

std::function<std::string()> changed(Change change) {
  return [change] {
    auto model = smallModel();
    change(*model.mutable_graph()->mutable_initializer(0));
    return model.SerializeAsString();
  };
}

void addEntry(onnx::TensorProto& tensor, const char* key, const char* value) {
  auto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

void addBrokenExternalData(std::vector<BrokenModel>& models) {
  const auto wrong = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kInvalidArgument, text, changed(std::move(change))});
  };
  wrong("ExternalParentFolder", "'..' in the location", [](auto& t) { setExternal(t, "../secret.bin"); });
  wrong("ExternalHiddenParentFolder", "'..' in the location", [](auto& t) { setExternal(t, "folder/../../secret.bin"); });
  wrong("ExternalAbsolutePath", "absolute path", [](auto& t) { setExternal(t, "/etc/passwd"); });
  wrong("ExternalDevice", "absolute path", [](auto& t) { setExternal(t, "/dev/zero"); });
  wrong("ExternalBackslash", "backslash", [](auto& t) { setExternal(t, "..\\secret.bin"); });
  wrong("ExternalLinkOutOfTheFolder", "outside the model's folder", [](auto& t) { setExternal(t, "link.bin"); });
  wrong("ExternalLinkedFolder", "outside the model's folder", [](auto& t) { setExternal(t, "linked/secret.bin"); });
  wrong("ExternalPipe", "not a regular file", [](auto& t) { setExternal(t, "pipe"); });
  wrong("ExternalFolder", "not a regular file", [](auto& t) { setExternal(t, "folder"); });
  wrong("ExternalNul", "NUL", [](auto& t) { setExternal(t, std::string("weights.bin\0.txt", 16)); });
  wrong("ExternalEmptyLocation", "empty location", [](auto& t) { setExternal(t, ""); });
  wrong("ExternalNoLocation", "without a location", [](auto& t) {
    setExternal(t, "weights.bin");
    t.clear_external_data();
  });
  wrong("ExternalTwoLocations", "key 'location' of external data twice", [](auto& t) {
    setExternal(t, "weights.bin");
    auto* entry = t.add_external_data();
    entry->set_key("location");
    entry->set_value("other.bin");
  });
  wrong("ExternalNegativeOffset", "external offset '-4'", [](auto& t) { setExternal(t, "weights.bin", "-4"); });
  wrong("ExternalOffsetOf70Bits", "external offset",
        [](auto& t) { setExternal(t, "weights.bin", "1180591620717411303424"); });
  wrong("ExternalOffsetThatIsText", "external offset 'ten'", [](auto& t) { setExternal(t, "weights.bin", "ten"); });
  wrong("ExternalOffsetPastTheEnd", "offset 65 outside the file", [](auto& t) { setExternal(t, "weights.bin", "65"); });
  wrong("ExternalFileTooShort", "end after the file", [](auto& t) { setExternal(t, "weights.bin", "32"); });
  wrong("ExternalLengthTooShort", "length 8; expected the 36 bytes",
        [](auto& t) { setExternal(t, "weights.bin", "0", "8"); });
  wrong("ExternalLengthTooLong", "length 9223372036854775807",
        [](auto& t) { setExternal(t, "weights.bin", "0", "9223372036854775807"); });
  wrong("ExternalUnknownKey", "unknown key 'url'", [](auto& t) {
    setExternal(t, "weights.bin");
    addEntry(t, "url", "http://example.com/weights.bin");
  });
  wrong("ExternalAndInlineData", "both external and inline data", [](auto& t) {
    setExternal(t, "weights.bin");
    t.set_raw_data("0123");
  });
  wrong("ExternalStrings", "string tensor in external data", [](auto& t) {
    setExternal(t, "weights.bin");
    t.set_data_type(onnx::TensorProto::STRING);
  });
  models.push_back(
      {"ExternalFileMissing", ErrorCode::kNotFound, "no such file", changed([](auto& t) { setExternal(t, "absent.bin"); })});
  models.push_back({"ExternalOverlap", ErrorCode::kInvalidArgument, "overlap another tensor's in part", [] {
                      auto model = smallModel();
                      setExternal(*model.mutable_graph()->mutable_initializer(0), "weights.bin", "0");
                      setExternal(*addFloats(*model.mutable_graph(), "v", {3, 3}), "weights.bin", "4");
                      return model.SerializeAsString();
                    }});
}

}  // namespace

void addBrokenTensors(std::vector<BrokenModel>& models) {
  const auto wrong = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kInvalidArgument, text, changed(std::move(change))});
  };
  const auto other = [&](const char* name, ErrorCode code, const char* text, Change change) {
    models.push_back({name, code, text, changed(std::move(change))});
  };
  wrong("NegativeDim", "dims [3, -3]", [](auto& t) { t.set_dims(1, -3); });
  wrong("DimsBeyond63Bits", "fits in 63 bits", [](auto& t) {
    t.set_dims(0, std::int64_t{1} << 40);
    t.set_dims(1, std::int64_t{1} << 40);
  });
  wrong("DimsWithoutData", "9 elements in float_data; expected 1099511627776", [](auto& t) {
    t.set_dims(0, std::int64_t{1} << 20);
    t.set_dims(1, std::int64_t{1} << 20);
  });
  other("TensorBeyondTheAddressSpace", ErrorCode::kLimitExceeded, "bytes are one tensor",
        [](auto& t) { t.set_dims(0, std::int64_t{1} << 50); });
  other("TensorOfNineAxes", ErrorCode::kLimitExceeded, "rank 9", [](auto& t) {
    for (int i = 0; i < 7; ++i) t.add_dims(1);
  });
  other("UnknownElementType", ErrorCode::kUnsupported, "element type 99", [](auto& t) { t.set_data_type(99); });
  other("NoElementType", ErrorCode::kUnsupported, "element type 0", [](auto& t) { t.clear_data_type(); });
  other("ComplexElements", ErrorCode::kUnsupported, "element type 14", [](auto& t) { t.set_data_type(14); });
  other("EightBitFloats", ErrorCode::kUnsupported, "element type 17 (float8e4m3fn)", [](auto& t) { t.set_data_type(17); });
  other("TensorInSegments", ErrorCode::kUnsupported, "segments", [](auto& t) { t.mutable_segment()->set_begin(0); });
  wrong("RawDataTooShort", "35 bytes of raw_data; expected 36", [](auto& t) {
    t.clear_float_data();
    t.set_raw_data(std::string(35, 'r'));
  });
  wrong("RawDataTooLong", "37 bytes of raw_data; expected 36", [](auto& t) {
    t.clear_float_data();
    t.set_raw_data(std::string(37, 'r'));
  });
  wrong("RawDataForNoElements", "4 bytes of raw_data; expected 0", [](auto& t) {
    t.clear_float_data();
    t.set_dims(0, 0);
    t.set_raw_data("data");
  });
  wrong("NoData", "0 elements in float_data; expected 9", [](auto& t) { t.clear_float_data(); });
  wrong("OneElementTooFew", "8 elements in float_data", [](auto& t) { t.mutable_float_data()->RemoveLast(); });
  wrong("DataOfAnotherType", "float32 tensor with int64_data", [](auto& t) {
    t.clear_float_data();
    for (int i = 0; i < 9; ++i) t.add_int64_data(i);
  });
  wrong("RawAndTypedData", "both raw_data and typed data", [](auto& t) { t.set_raw_data(std::string(36, 'r')); });
  wrong("StringsInRawData", "string tensor with raw_data", [](auto& t) {
    t.clear_float_data();
    t.set_data_type(onnx::TensorProto::STRING);
    t.set_raw_data(std::string(9, 'r'));
  });
  addBrokenExternalData(models);
}

void prepareExternalFiles(const TemporaryFolder& folder) {
  folder.write("secret.bin", std::string(64, 's'));
  folder.write("model/weights.bin", std::string(64, 'w'));
  folder.write("model/folder/inner.bin", std::string(64, 'i'));
  std::filesystem::create_symlink(folder.path() / "secret.bin", folder.path() / "model/link.bin");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "model/linked");
  SS_CHECK(::mkfifo((folder.path() / "model/pipe").c_str(), 0600) == 0);
}

}  // namespace stepscope::testing
