// What programs that are compiled already rely on: sizes and places of the fields, numbers, and the symbols of the library.
// A test that fails here means another SS_API_MAJOR; fields that are added at the end change only the size of their struct.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <regex>
#include <set>

#include "tests/app/api/sessions.h"
#include "tests/app/cli/program.h"

namespace stepscope::testing {
namespace {

#define EXPECT_AT(type, field, place) EXPECT_EQ(offsetof(type, field), place##u) << #type "." #field

TEST(Abi, FieldsStandWhereTheyStoodInOneZero) {
  EXPECT_EQ(sizeof(ss_tensor), 40u);
  EXPECT_AT(ss_tensor, dtype, 4);
  EXPECT_AT(ss_tensor, dims, 8);
  EXPECT_AT(ss_tensor, rank, 16);
  EXPECT_AT(ss_tensor, data, 24);
  EXPECT_AT(ss_tensor, bytes, 32);
  EXPECT_EQ(sizeof(ss_value_info), 56u);
  EXPECT_AT(ss_value_info, name, 8);
  EXPECT_AT(ss_value_info, dims, 16);
  EXPECT_AT(ss_value_info, rank, 24);
  EXPECT_AT(ss_value_info, text, 32);
  EXPECT_AT(ss_value_info, trained, 40);
  EXPECT_AT(ss_value_info, elements, 48);
  EXPECT_EQ(sizeof(ss_option_info), 64u);
  EXPECT_AT(ss_option_info, choice_count, 4);
  EXPECT_AT(ss_option_info, name, 8);
  EXPECT_AT(ss_option_info, choices, 56);
  EXPECT_EQ(sizeof(ss_instruction_info), 56u);
  EXPECT_AT(ss_instruction_info, index, 4);
  EXPECT_AT(ss_instruction_info, phase, 24);
  EXPECT_AT(ss_instruction_info, bytes_written, 48);
  EXPECT_EQ(sizeof(ss_step_record), 88u);
  EXPECT_AT(ss_step_record, step, 24);
  EXPECT_AT(ss_step_record, loss, 32);
  EXPECT_AT(ss_step_record, ns, 64);
  EXPECT_AT(ss_step_record, peak_bytes, 80);
  EXPECT_EQ(sizeof(ss_position), 40u);
  EXPECT_AT(ss_position, step, 16);
  EXPECT_AT(ss_position, stopped_by, 32);
  EXPECT_EQ(sizeof(ss_evaluation), 48u);
  EXPECT_AT(ss_evaluation, synthetic, 4);
  EXPECT_AT(ss_evaluation, loss, 16);
  EXPECT_AT(ss_evaluation, ns, 40);
  EXPECT_EQ(sizeof(ss_property), 48u);
  EXPECT_AT(ss_property, kind, 4);
  EXPECT_AT(ss_property, name, 8);
  EXPECT_AT(ss_property, integer, 16);
  EXPECT_AT(ss_property, tensor, 40);
  EXPECT_EQ(SS_PROPERTY_TENSOR, 4);
  EXPECT_EQ(SS_CANCELLED, 8);
  EXPECT_EQ(SS_BFLOAT16, 16);
  EXPECT_EQ(ss_api_version(), (1u << 16) + 5);
}

// The functions that the header declares.
std::set<std::string> declared() {
  std::set<std::string> names;
  const std::string header = contents(sourceFolder() / "app" / "api" / "stepscope.h");
  const std::regex declaration("SS_API(?:_VOID)? [^;]*?(ss_[a-z_]+)\\(");
  for (auto it = std::sregex_iterator(header.begin(), header.end(), declaration); it != std::sregex_iterator(); ++it)
    names.insert((*it)[1]);
  return names;
}

TEST(Abi, TheLibraryShowsTheFunctionsOfTheHeaderAndNothingElse) {
  const std::set<std::string> expected = declared();
  ASSERT_GT(expected.size(), 30u);
  const TemporaryFolder folder;
  const auto list = folder.path() / "symbols.txt";
  ASSERT_EQ(std::system(("nm -D --defined-only " SS_LIBRARY " > " + list.string()).c_str()), 0);
  std::set<std::string> found;
  std::istringstream lines(contents(list));
  for (std::string address, kind, name; lines >> address >> kind >> name;)
    if (kind != "A") found.insert(name.substr(0, name.find('@')));
  EXPECT_EQ(found, expected);
}

// Two programs in one: what is loaded at run time is a library of its own, with a registry and state of its own.
TEST(Abi, CanBeLoadedAtRunTime) {
  void* library = dlopen(SS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto* version = reinterpret_cast<std::uint32_t (*)()>(dlsym(library, "ss_api_version"));
  ASSERT_TRUE(version) << dlerror();
  EXPECT_EQ(version(), ss_api_version());
  dlclose(library);
}

// A program that was compiled with an older header has shorter structs: nothing is written behind them.
TEST(Abi, AShorterStructOfTheCallerIsFilledAsFarAsItGoes) {
  const ApiSession session = openDigits();
  struct {
    ss_step_record record;
  } place;
  std::memset(&place, 0x5a, sizeof(place));
  place.record.size = offsetof(ss_step_record, ns);
  ASSERT_DONE(ss_step(session.get(), &place.record));
  EXPECT_EQ(place.record.size, offsetof(ss_step_record, ns));
  EXPECT_EQ(place.record.step, 0);
  EXPECT_EQ(place.record.ns, 0x5a5a5a5a5a5a5a5a);
  EXPECT_EQ(place.record.peak_bytes, 0x5a5a5a5a5a5a5a5a);
}

}  // namespace
}  // namespace stepscope::testing
