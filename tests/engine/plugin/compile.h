// Compiles plugins as a user does: with the compiler of the machine, the header of the ABI and nothing else.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace stepscope::testing {

inline const std::string kWarnings = "-Wall -Wextra -Werror";

// `sources` by blanks, and flags besides; a fatal failure where the compiler says no.
inline std::filesystem::path compilePlugin(const std::filesystem::path& folder, const std::string& name,
                                           const std::string& sources, const std::string& flags = "",
                                           const std::string& compiler = "cc -std=c11") {
  const auto file = folder / (name + ".so");
  const std::string command = fmt::format("{} {} -O2 -fPIC -shared -I {}/plugins/abi {} {} -o {} -lm", compiler, kWarnings,
                                          SS_SOURCE_DIR, flags, sources, file.string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return file;
}

inline const std::string kSamples = SS_SOURCE_DIR "/plugins/samples";
inline std::filesystem::path compileGatedNorm(const std::filesystem::path& folder) {
  return compilePlugin(folder, "gated_rms_norm",
                       kSamples + "/gated_rms_norm/gated_rms_norm.c " + kSamples + "/gated_rms_norm/pass.c");
}
inline std::filesystem::path compileNpyTar(const std::filesystem::path& folder) {
  return compilePlugin(folder, "npy_tar", kSamples + "/npy_tar/npy_tar.c");
}
inline std::filesystem::path compileMyOp(const std::filesystem::path& folder) {
  return compilePlugin(folder, "my_op", kSamples + "/my_op/my_op.c");
}

// With the emulator's form of its device functions alone, and no image.
inline std::filesystem::path compileCudaNorm(const std::filesystem::path& folder) {
  return compilePlugin(folder, "cuda_rms_norm", kSamples + "/cuda_rms_norm/cuda_rms_norm.cpp", "", "c++ -std=c++20");
}
// `image`: a file with what the driver is given, in place of what nvcc makes.
inline std::filesystem::path compileCudaNoise(const std::filesystem::path& folder, const std::string& image = "") {
  return compilePlugin(folder, "cuda_noise", kSamples + "/cuda_noise/cuda_noise.cpp",
                       image.empty() ? "" : fmt::format("-DNOISE_FATBIN='\"{}\"'", image), "c++ -std=c++20");
}

}  // namespace stepscope::testing
