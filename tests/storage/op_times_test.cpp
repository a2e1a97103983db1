// PyTorch's times by operators of ours.
#include "storage/pytorch/op_times.h"

#include <gtest/gtest.h>

namespace stepscope::storage {
namespace {

InstructionTime instruction(const char* op, const char* label, const char* phase, std::int64_t median, int position = 0) {
  InstructionTime one;
  one.position = position;
  one.op = op, one.label = label, one.phase = phase;
  one.time.n = 1, one.time.median = median;
  return one;
}

TEST(PyTorchOpTimes, ARowOfSeveralInstructionsIsDividedByTheirTimes) {
  PyTorchJoin join;
  join.rows = {{"forward", "", "aten::linear", "MatMul 'a' + Add 'b'", 1000, 400},
               {"forward", "", "aten::linear + aten::add", "MatMul 'c'", 500, 100},
               {"backward", "", "aten::linear", "MatMul 'a'", 60, 30},
               {"forward", "", "aten::relu", "", 70, 0},
               {"forward", "", "", "Cast 'd'", 0, 80},
               {"step", "", "step", "step", 2000, 1000}};
  const std::vector<PyTorchOpTime> times =
      opTimesOf(join, {instruction("MatMul", "MatMul 'a'", "forward", 300), instruction("Add", "Add 'b'", "forward", 100),
                       instruction("MatMul", "MatMul 'c'", "forward", 100, 2),
                       instruction("MatMul", "MatMul 'a'", "backward", 30), instruction("Cast", "Cast 'd'", "forward", 80)});
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[0].phase + times[0].op, "backwardMatMul");
  EXPECT_EQ(times[0].theirNs, 60);
  EXPECT_EQ(times[1].phase + times[1].op, "forwardAdd");
  EXPECT_EQ(times[1].theirNs, 250);
  EXPECT_EQ(times[1].ourNs, 100);
  EXPECT_EQ(times[2].theirNs, 750 + 500);
  EXPECT_EQ(times[2].ourNs, 400);
  EXPECT_EQ(times[2].instructions, (std::vector<int>{0, 2}));
  EXPECT_EQ(times[2].theirs, "aten::linear, aten::add");
}

TEST(PyTorchOpTimes, InstructionsOfOneLabelComeInOrderAndUnknownOnesGetNothing) {
  PyTorchJoin join;
  join.rows = {{"forward", "", "aten::a", "Relu 'x'", 10, 1}, {"forward", "", "aten::b", "Relu 'x' + Gone 'y'", 20, 3}};
  const auto times =
      opTimesOf(join, {instruction("Relu", "Relu 'x'", "forward", 1), instruction("Relu", "Relu 'x'", "forward", 3)});
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].theirNs, 30);
  EXPECT_EQ(times[0].ourNs, 4);
}

}  // namespace
}  // namespace stepscope::storage
