#include "engine/snapshot/csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stepscope {
namespace {

TEST(Csv, CellsFollowRfc4180AndDisarmFormulas) {
  EXPECT_EQ(csvCell("plain"), "plain");
  EXPECT_EQ(csvCell("a,b"), "\"a,b\"");
  EXPECT_EQ(csvCell("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
  EXPECT_EQ(csvCell("=1+1"), "'=1+1");
  EXPECT_EQ(csvCell("-1+1"), "'-1+1");
  EXPECT_EQ(csvCell("-1.5e-3"), "-1.5e-3") << "a number is no formula";
  EXPECT_EQ(csvCell("\x1b[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(csvCell("@x"), "'@x");
}

TEST(Csv, LinesHoldNumbersThatReadBackTheSame) {
  CsvTable table("a,b,c,d");
  table.line(1, -0.1, std::optional<double>(), "x");
  table.line(std::int64_t{-7}, std::nan(""), std::optional(-INFINITY), std::string("y,z"));
  EXPECT_EQ(std::move(table).take(), "a,b,c,d\r\n1,-0.1,,x\r\n-7,NaN,-Infinity,\"y,z\"\r\n");
}

TEST(Csv, NamesOfAFileAreEscapedToo) {
  const std::vector<std::string> names = {"=a", "b\"c"};
  EXPECT_EQ(CsvTable(names).take(), "'=a,\"b\"\"c\"\r\n");
}

}  // namespace
}  // namespace stepscope
