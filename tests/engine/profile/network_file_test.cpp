// A network that is described in a file: what is read, and what is wrong with it.
#include "engine/profile/network_file.h"

#include <gtest/gtest.h>

namespace stepscope {
namespace {

std::string errorOf(const char* text) {
  const auto network = parseNetwork(text, "n.json");
  return network ? std::string() : network.error().message;
}

TEST(NetworkFile, IsReadAsItIsWritten) {
  const auto network = parseNetwork(
      R"({"name": "racks", "message_ns": 500,
          "levels": [{"name": "machine", "ranks": 8, "latency_ns": 2000, "bytes_per_second": 2e10},
                     {"name": "rack", "ranks": 64, "latency_ns": 5000, "bytes_per_second": 1e10},
                     {"name": "all", "latency_ns": 20000, "bytes_per_second": 3e9}]})",
      "n.json");
  ASSERT_TRUE(network.has_value()) << network.error().message;
  EXPECT_EQ(network->name, "racks");
  EXPECT_EQ(network->messageNs, 500);
  ASSERT_EQ(network->levels.size(), 3u);
  EXPECT_EQ(network->levels[1].name, "rack");
  EXPECT_EQ(network->levels[1].ranks, 64);
  EXPECT_EQ(network->levels[2].ranks, 0);
  EXPECT_EQ(network->levels[2].latencyNs, 20000);
  EXPECT_EQ(network->levels[0].bytesPerSecond, 2e10);
}

TEST(NetworkFile, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf("fast"), "network 'n.json': found no JSON; expected an object");
  EXPECT_EQ(errorOf("{}"), "network 'n.json': levels: found nothing; expected a list of 1 to 8 levels, nearest first");
  EXPECT_EQ(errorOf(R"({"levels": [{"latency_ns": 1}]})"),
            "network 'n.json': levels[0].name: found no text; expected the name of the level");
  EXPECT_EQ(errorOf(R"({"levels": [{"name": "a", "latency_ns": -1, "bytes_per_second": 1}]})"),
            "network 'n.json': levels[0].latency_ns: found -1; expected a number from 0 on");
  EXPECT_EQ(errorOf(R"({"levels": [{"name": "a", "latency_ns": 1, "bytes_per_second": 0}]})"),
            "network 'n.json': levels[0].bytes_per_second: found 0; expected a number from 1 on");
  EXPECT_EQ(errorOf(R"({"levels": [{"name": "a", "ranks": 8, "latency_ns": 1, "bytes_per_second": 1},
                                   {"name": "b", "ranks": 12, "latency_ns": 1, "bytes_per_second": 1},
                                   {"name": "c", "latency_ns": 1, "bytes_per_second": 1}]})"),
            "network 'n.json': levels[1].ranks: found 12; expected a multiple of 8 up to 2^24");
  EXPECT_EQ(errorOf(R"({"levels": [{"name": "a", "ranks": 8, "latency_ns": 1, "bytes_per_second": 1}]})"),
            "network 'n.json': levels[0].ranks: found 8; expected none at the last level, within which all ranks are");
}

}  // namespace
}  // namespace stepscope
