// Options from the environment.
#include "engine/build/environment.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace stepscope {
namespace {

TEST(Environment, SetsWhatItNames) {
  TrainOptions options;
  const std::array<const char*, 5> environment{"PATH=/bin", "STEPSCOPE_SET_LR=0.5", "STEPSCOPE_SET_PASS_FUSE_GELU=off",
                                               "STEPSCOPE_SHARED=/x", nullptr};
  const Status set = applyEnvironment(options, environment.data());
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_DOUBLE_EQ(options.lr, 0.5);
  EXPECT_FALSE(options.passes.at("fuse_gelu"));
  EXPECT_EQ(options.origins.at("lr").setBy, "environment");
  EXPECT_EQ(options.origins.size(), 2u);
}

TEST(Environment, RefusesWhatIsNoOptionOrNoValue) {
  TrainOptions options;
  const std::array<const char*, 2> unknown{"STEPSCOPE_SET_SPEED=11", nullptr}, value{"STEPSCOPE_SET_LR=fast", nullptr};
  const Status first = applyEnvironment(options, unknown.data()), second = applyEnvironment(options, value.data());
  ASSERT_FALSE(first.has_value());
  EXPECT_NE(first.error().message.find("STEPSCOPE_SET_SPEED: no such option"), std::string::npos) << first.error().message;
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message.find("STEPSCOPE_SET_LR: option 'lr'"), std::string::npos) << second.error().message;
}

TEST(Environment, EveryOptionHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const OptionInfo& info : optionTable()) EXPECT_TRUE(names.insert(environmentName(info.name)).second) << info.name;
}

}  // namespace
}  // namespace stepscope
