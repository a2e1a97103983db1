#include "engine/data/npy.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <array>
#include <cstring>
#include <fstream>
#include <numeric>

#include "engine/data/npy_header.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

std::string withHeader(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {version, '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  if (version > 1) bytes += {'\0', '\0'};
  return bytes + header + data;
}

Result<Tensor> read(const std::string& bytes) { return readNpy(std::as_bytes(std::span(bytes))); }

std::string floats(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return {reinterpret_cast<const char*>(values.data()), count * 4};
}

std::filesystem::path writeZip(const std::filesystem::path& path,
                               const std::vector<std::pair<std::string, std::string>>& entries) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (const auto& [name, bytes] : entries)
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), ZIP_FL_ENC_UTF_8);
  SS_CHECK(zip_close(archive) == 0);
  return path;
}

const std::string kTwoByThree = withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", floats(6));

TEST(Npy, ReadsWhatNumPyWrites) {
  const auto tensor = read(kTwoByThree);
  ASSERT_TRUE(tensor.has_value()) << tensor.error().message;
  EXPECT_EQ(tensor->dims(), (Dims{2, 3}));
  EXPECT_EQ(tensor->as<float>()[5], 5.0f);
  EXPECT_TRUE(read(withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", floats(1), 2))->dims().empty());
  EXPECT_EQ(read(withHeader("{\"shape\":(0,4),\"descr\":\"<f4\",\"fortran_order\":False}", "", 3))->elements(), 0);
}

TEST(Npy, FortranOrderBecomesCOrder) {
  const auto tensor = read(withHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", floats(6)));
  const std::array expected{0.f, 2.f, 4.f, 1.f, 3.f, 5.f};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), tensor->as<float>().begin()));
}

TEST(Npy, WritesWhatItReads) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                            DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool})
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{2, 3}, Dims{0, 2}}) {
      Tensor tensor(dtype, dims);
      for (std::int64_t i = 0; i < tensor.elements(); ++i) storeElement(tensor.view(), i, static_cast<double>(i % 2));
      ASSERT_TRUE(writeNpy(folder.path() / "a.npy", tensor.view()).has_value());
      const auto back = readNpyFile(folder.path() / "a.npy");
      ASSERT_TRUE(back.has_value()) << back.error().message;
      EXPECT_EQ(Attributes({{"t", *back}}), Attributes({{"t", tensor}})) << dtypeName(dtype) << dimsText(dims);
    }
}

TEST(Npy, BrokenFilesGiveTypedErrors) {
  const auto header = [](const std::string& text, const std::string& data = floats(6)) { return withHeader(text, data); };
  const std::vector<std::tuple<std::string, ErrorCode, std::string>> cases{
      {"", ErrorCode::kCorrupt, "no NumPy magic"},
      {"PK\x03\x04 some archive", ErrorCode::kCorrupt, "no NumPy magic"},
      {kTwoByThree.substr(0, 30), ErrorCode::kCorrupt, "truncated header"},
      {kTwoByThree.substr(0, kTwoByThree.size() - 1), ErrorCode::kInvalidArgument, "23 bytes of elements; expected 24"},
      {kTwoByThree + "x", ErrorCode::kInvalidArgument, "25 bytes of elements"},
      {withHeader("{}", "", 9), ErrorCode::kUnsupported, "version 9"},
      {std::string("\x93NUMPY\x02\0\xff\xff\xff\xff....", 16), ErrorCode::kLimitExceeded, "header of 4294967295 bytes"},
      {header("['descr']"), ErrorCode::kCorrupt, "no dictionary"},
      {header("{'descr': '<f4', 'fortran_order': False}"), ErrorCode::kCorrupt, "without descr, fortran_order or shape"},
      {header("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (6,)}"), ErrorCode::kCorrupt, "neither True nor False"},
      {header("{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}"), ErrorCode::kCorrupt, "no number of 0 or more"},
      {header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), ErrorCode::kCorrupt,
       "no number"},
      {header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"), ErrorCode::kLimitExceeded,
       "bytes are one array"},
      {header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,6)}"), ErrorCode::kLimitExceeded,
       "axes"},
      {header("{'descr': '<f4', 'fortran_order': False, 'shape': 6}"), ErrorCode::kCorrupt, "no tuple"},
      {header("{'descr': '|O', 'fortran_order': False, 'shape': (6,)}"), ErrorCode::kUnsupported, "'|O'"},
      {header("{'descr': '>f4', 'fortran_order': False, 'shape': (6,)}"), ErrorCode::kUnsupported, "'>f4'"},
      {header("{'descr': '<U4', 'fortran_order': False, 'shape': (6,)}"), ErrorCode::kUnsupported, "'<U4'"},
      {header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}"), ErrorCode::kUnsupported, "records"},
      {header("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'extra': 1}"), ErrorCode::kCorrupt,
       "header key 'extra'"},
      {header("{'descr': '<f4"), ErrorCode::kUnsupported, "records"}};
  for (const auto& [bytes, code, text] : cases) {
    const auto tensor = read(bytes);
    ASSERT_FALSE(tensor.has_value()) << text;
    EXPECT_EQ(errorCodeName(tensor.error().code), errorCodeName(code)) << tensor.error().message;
    EXPECT_NE(tensor.error().message.find(text), std::string::npos) << tensor.error().message << " lacks " << text;
  }
}

TEST(Npz, ReadsArraysByName) {
  const TemporaryFolder folder;
  const auto path =
      writeZip(folder.path() / "a.npz", {{"x.npy", kTwoByThree}, {"folder/y.npy", kTwoByThree}, {"readme.txt", "text"}});
  const auto arrays = readNpz(path);
  ASSERT_TRUE(arrays.has_value()) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ(arrays->at("x").as<float>()[5], 5.0f);
  EXPECT_TRUE(arrays->contains("folder/y"));
}

TEST(Npz, BrokenArchivesGiveTypedErrors) {
  const TemporaryFolder folder;
  EXPECT_EQ(readNpz(folder.path() / "absent.npz").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(readNpz(folder.path()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(readNpz(folder.write("text.npz", "no archive")).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(readNpz(folder.write("empty.npz", "")).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(readNpz(writeZip(folder.path() / "pickle.npz", {{"x.npy", "not an array"}})).error().code, ErrorCode::kCorrupt);
  const auto shorter = writeZip(folder.path() / "short.npz", {{"x.npy", kTwoByThree.substr(0, kTwoByThree.size() - 4)}});
  EXPECT_NE(readNpz(shorter).error().message.find("array 'x': 20 bytes of elements; expected 24"), std::string::npos);
  const auto good = writeZip(folder.path() / "good.npz", {{"x.npy", kTwoByThree}});
  std::ifstream file(good, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(readNpz(folder.write("half.npz", bytes.substr(0, bytes.size() / 2))).error().code, ErrorCode::kCorrupt);
  int refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {  // no byte flip may do harm, and most are noticed
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    refused += readNpz(folder.write("damaged.npz", damaged)).has_value() ? 0 : 1;
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) / 2);
}

}  // namespace
}  // namespace stepscope::testing
