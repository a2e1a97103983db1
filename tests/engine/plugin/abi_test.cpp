// The layout of ABI 1.2 on machines with 64-bit pointers: plugins that were compiled against it read and write these bytes.
// Who changes a struct counts SSP_ABI_MINOR or SSP_ABI_MAJOR up and says what old plugins get (plugins/abi/README.md).
#include <gtest/gtest.h>

#include <cstddef>

#include "plugins/abi/stepscope_device.h"

namespace {

static_assert(sizeof(void*) == 8);

// Size, and where the last member begins.
TEST(PluginAbi, StructsAreThoseOfVersion1_2) {
  EXPECT_EQ(SSP_ABI_MAJOR, 1u);
  EXPECT_EQ(SSP_ABI_MINOR, 2u);
#define EXPECT_LAYOUT(type, bytes, member, at) \
  EXPECT_EQ(sizeof(type), bytes##u);           \
  EXPECT_EQ(offsetof(type, size), 0u);         \
  EXPECT_EQ(offsetof(type, member), at##u)
  EXPECT_LAYOUT(ssp_attr, 64, count, 56);
  EXPECT_LAYOUT(ssp_attr_info, 48, s, 40);
  EXPECT_LAYOUT(ssp_shape_context, 176, fail, 168);
  EXPECT_LAYOUT(ssp_gradient_context, 128, fail, 120);
  EXPECT_LAYOUT(ssp_example_operand, 40, high, 32);
  EXPECT_LAYOUT(ssp_example, 40, attr_count, 32);
  EXPECT_LAYOUT(ssp_op, 160, user, 152);
  EXPECT_LAYOUT(ssp_operand, 32, constant, 24);
  EXPECT_LAYOUT(ssp_kernel_context, 88, cannot_fail, 80);
  EXPECT_LAYOUT(ssp_buffer, 24, bytes, 16);
  EXPECT_LAYOUT(ssp_argument, 56, value_bytes, 48);
  EXPECT_LAYOUT(ssp_random_key, 32, now, 24);
  EXPECT_LAYOUT(ssp_device_function, 72, parameter_bytes, 24);
  EXPECT_LAYOUT(ssp_launch, 40, argument_count, 32);
  EXPECT_LAYOUT(ssp_kernel_call, 104, launch, 96);
  EXPECT_LAYOUT(ssp_kernel, 112, function_count, 104);
  EXPECT_LAYOUT(ssp_emulator, 104, shared, 96);
  EXPECT_LAYOUT(ssp_pass_context, 216, fail, 208);
  EXPECT_LAYOUT(ssp_pass, 56, user, 48);
  EXPECT_LAYOUT(ssp_option, 48, choice_count, 40);
  EXPECT_LAYOUT(ssp_array, 32, dims, 24);
  EXPECT_LAYOUT(ssp_reader_context, 48, array_count, 40);
  EXPECT_LAYOUT(ssp_reader, 56, user, 48);
  EXPECT_LAYOUT(ssp_host, 24, version, 16);
  EXPECT_LAYOUT(ssp_plugin, 136, deinit, 128);
#undef EXPECT_LAYOUT
  // What plugins of version 1.0 end with.
  EXPECT_EQ(offsetof(ssp_kernel_call, fail), 80u);
  EXPECT_EQ(offsetof(ssp_kernel, user), 72u);
  EXPECT_EQ(offsetof(ssp_kernel, functions), 80u);
}

}  // namespace
