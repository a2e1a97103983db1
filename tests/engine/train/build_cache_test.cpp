// The build cache: files of answers that nobody has to believe.
#include "engine/build/build_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>

namespace stepscope {
namespace {

namespace fs = std::filesystem;

class BuildCacheTest : public ::testing::Test {
 protected:
  BuildCacheTest() : folder_(fs::temp_directory_path() / ("build_cache_test." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~BuildCacheTest() override { fs::remove_all(folder_); }

  static CacheQuestion question(const std::string& signature = "x float32[8, 2]",
                                const std::string& model = std::string(64, 'a')) {
    return {"test", {{"version", "1"}, {"model", model}, {"signature", signature}}};
  }
  static std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

  fs::path folder_;
};

TEST_F(BuildCacheTest, FindsWhatWasKeptAndSaysByWhat) {
  const BuildCache cache(folder_);
  EXPECT_EQ(cache.find(question()).reason, "miss: no entry yet");
  const std::string answer("two\nlines and a \0", 17);
  ASSERT_TRUE(cache.keep(question(), answer));
  const CacheFound found = cache.find(question());
  EXPECT_EQ(found.answer, answer);
  EXPECT_TRUE(found.reason.starts_with("hit: same version, model, signature; found ")) << found.reason;
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
}

TEST_F(BuildCacheTest, IsOffWithoutAFolder) {
  const BuildCache cache{fs::path()};
  EXPECT_FALSE(cache.on());
  EXPECT_TRUE(cache.keep(question(), "answer"));
  EXPECT_EQ(cache.find(question()).reason, "miss: cache.dir is off");
}

TEST_F(BuildCacheTest, MissesByEachPartAndSaysWhich) {
  const BuildCache cache(folder_);
  ASSERT_TRUE(cache.keep(question(), "answer"));
  EXPECT_EQ(cache.find(question("x float32[16, 2]")).reason,
            "miss: signature is 'x float32[16, 2]', and 'x float32[8, 2]' in the newest entry");
  EXPECT_EQ(cache.find(question("x float32[8, 2]", std::string(64, 'b'))).reason, "miss: not the model of the newest entry");
  CacheQuestion other = question();
  other.parts[0].second = "2";
  EXPECT_EQ(cache.find(other).reason, "miss: version is '2', and '1' in the newest entry");
  other = question();
  other.parts[2].first = "two words";
  ASSERT_TRUE(BuildCache(folder_ / "words").keep(other, "answer"));
  EXPECT_TRUE(BuildCache(folder_ / "words").find(other).answer);
  other = question();
  other.kind = "roofs";
  EXPECT_EQ(cache.find(other).reason, "miss: no entry yet");
  other = question();
  other.parts.emplace_back("options", "lr=1");
  EXPECT_EQ(cache.find(other).reason, "miss: the newest entry has no options");
}

TEST_F(BuildCacheTest, MissesWhereAnyByteIsDamaged) {
  const BuildCache cache(folder_);
  ASSERT_TRUE(cache.keep(question(), "an answer"));
  const fs::path file = cache.fileOf(question());
  const std::string whole = contents(file);
  ASSERT_FALSE(whole.empty());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    write(file, damaged);
    const CacheFound found = cache.find(question());
    ASSERT_FALSE(found.answer) << "byte " << i;
    ASSERT_NE(found.reason.find("damaged"), std::string::npos) << found.reason;
    write(file, whole.substr(0, i));
    ASSERT_FALSE(cache.find(question()).answer) << "cut off at " << i;
  }
  write(file, whole + " ");
  EXPECT_FALSE(cache.find(question()).answer);
  ASSERT_TRUE(cache.keep(question(), "an answer"));
  EXPECT_EQ(cache.find(question()).answer, "an answer") << "what is damaged is written anew";
}

TEST_F(BuildCacheTest, MissesWhereAnEntryBearsAnotherOnesName) {
  const BuildCache cache(folder_);
  ASSERT_TRUE(cache.keep(question("one"), "answer to one"));
  fs::copy_file(cache.fileOf(question("one")), cache.fileOf(question("two")));
  EXPECT_EQ(cache.find(question("two")).reason, "miss: the entry answers another question");
}

TEST_F(BuildCacheTest, MissesWhereAnEntryIsTooOld) {
  const BuildCache cache(folder_);
  ASSERT_TRUE(cache.keep(question(), "answer"));
  CacheQuestion fresh = question();
  fresh.mostSeconds = 60;
  EXPECT_TRUE(cache.find(fresh).answer);
  // An entry of the future is one of a clock that was set back.
  std::string text = contents(cache.fileOf(question()));
  EXPECT_NE(text.find("written 10\n"), std::string::npos);
  sleep(3);
  fresh.mostSeconds = 1;
  const CacheFound old = cache.find(fresh);
  EXPECT_FALSE(old.answer);
  EXPECT_NE(old.reason.find("old; expected at most 1 s"), std::string::npos) << old.reason;
}

TEST_F(BuildCacheTest, GivesUpWhatWasUsedLongestAgo) {
  const std::string answer(1000, 'x');
  const BuildCache cache(folder_, 3500);
  const auto at = [&](const char* name, int secondsAgo) {
    fs::last_write_time(cache.fileOf(question(name)), fs::file_time_type::clock::now() - std::chrono::seconds(secondsAgo));
  };
  ASSERT_TRUE(cache.keep(question("one"), answer));
  at("one", 30);
  ASSERT_TRUE(cache.keep(question("two"), answer));
  at("two", 20);
  EXPECT_TRUE(cache.find(question("one")).answer);  // now the newer one
  ASSERT_TRUE(cache.keep(question("three"), answer));
  EXPECT_TRUE(cache.find(question("one")).answer);
  EXPECT_FALSE(cache.find(question("two")).answer);
  EXPECT_TRUE(cache.find(question("three")).answer);
  const Status large = cache.keep(question("four"), std::string(4000, 'x'));
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("too large"), std::string::npos) << large.error().message;
}

TEST_F(BuildCacheTest, NamesTheFileThatCannotBeWritten) {
  write(folder_, "a file where a folder is expected");
  const BuildCache cache(folder_);
  EXPECT_FALSE(cache.find(question()).answer);
  const Status kept = cache.keep(question(), "answer");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kIo);
  EXPECT_NE(kept.error().message.find(cache.fileOf(question()).string()), std::string::npos) << kept.error().message;
}

TEST_F(BuildCacheTest, ServesSeveralProcessesAtOnce) {
  // Each writes answers that tell their own question, into little room, so that entries come and go under the readers.
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const BuildCache cache(folder_, 6000);
      int wrong = 0, hits = 0;
      for (int round = 0; round < 400; ++round) {
        const std::string name = std::to_string((round * 7 + child) % 8), answer = name + std::string(1000, name[0]);
        const CacheFound found = cache.find(question(name));
        hits += found.answer.has_value();
        if (found.answer && *found.answer != answer) ++wrong;
        if (!found.answer && found.reason.find("damaged") != std::string::npos) ++wrong;
        if (!found.answer && !cache.keep(question(name), answer)) ++wrong;
      }
      _exit(wrong != 0 ? 1 : hits == 0 ? 2 : 0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0) << "1: a wrong answer, or one that was not kept; 2: nothing was found";
  }
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().extension(), ".cache") << "nothing unfinished stays";
}

TEST(UserCacheFolder, IsThatOfTheUsersCaches) {
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(userCacheFolder(), "/somewhere/stepscope");
  setenv("XDG_CACHE_HOME", "relative", 1);  // the standard: ignored
  EXPECT_NE(userCacheFolder(), "relative/stepscope");
  before ? setenv("XDG_CACHE_HOME", kept.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
}

TEST(EngineBuild, IsTheFileOfTheCode) {
  EXPECT_NE(engineBuild().find(std::to_string(fs::file_size("/proc/self/exe")) + " bytes"), std::string::npos)
      << engineBuild();
}

}  // namespace
}  // namespace stepscope
