#include "neuron/base/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "neuron/base/error.h"
#include "neuron/base/log.h"

namespace {

using namespace neuron;

class Options : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const OptionRow& row : option_table()) unsetenv(row.name);
    reload_options();
  }
  void TearDown() override { SetUp(); }
  static void set(const char* name, const char* value) {
    setenv(name, value, 1);
    reload_options();
  }
  template <typename F>
  static std::string message(F body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Value);
      return error.what();
    }
    return "no error";
  }
};

TEST_F(Options, Defaults) {
  EXPECT_EQ(option_text(Option::Device), "host");
  EXPECT_EQ(option_list(Option::EagerMode), std::vector<std::string>{"adaptive"});
  EXPECT_FALSE(option_flag(Option::Guarded));
  EXPECT_TRUE(option_flag(Option::EnableConcatenation));
  EXPECT_EQ(option_integer(Option::MemoryLimit), -1);
  EXPECT_EQ(option_integer(Option::CacheSize), int64_t{1} << 30);
  EXPECT_FALSE(option_is_set(Option::Device));
}

TEST_F(Options, EveryDefaultIsValidAndEveryNameUnique) {
  check_environment();
  std::set<std::string> names;
  for (const OptionListing& row : option_listing()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_FALSE(row.set);
    EXPECT_EQ(row.value, row.fallback);
  }
}

TEST_F(Options, ValuesAreRead) {
  set("TORCH_NEURONX_DEVICE", "null");
  EXPECT_EQ(option_text(Option::Device), "null");
  EXPECT_TRUE(option_is_set(Option::Device));
  for (const char* yes : {"1", "True", "yes", "ON"}) {
    set("TORCH_NEURONX_GUARDED", yes);
    EXPECT_TRUE(option_flag(Option::Guarded)) << yes;
  }
  for (const char* no : {"0", "false", "No", "off", ""}) {
    set("TORCH_NEURONX_GUARDED", no);
    EXPECT_FALSE(option_flag(Option::Guarded)) << no;
  }
  set("TORCH_NEURONX_EAGER_MODE", "immediate,strict");
  EXPECT_EQ(option_list(Option::EagerMode), (std::vector<std::string>{"immediate", "strict"}));
  set("TORCH_NEURONX_MEMORY_LIMIT", "4GiB");
  EXPECT_EQ(option_integer(Option::MemoryLimit), int64_t{4} << 30);
}

TEST_F(Options, AValueIsReadOnce) {
  EXPECT_EQ(option_text(Option::Device), "host");
  setenv("TORCH_NEURONX_DEVICE", "null", 1);
  EXPECT_EQ(option_text(Option::Device), "host");
}

TEST_F(Options, ByteSizes) {
  EXPECT_EQ(parse_bytes("4096", "x"), 4096);
  EXPECT_EQ(parse_bytes("1k", "x"), 1024);
  EXPECT_EQ(parse_bytes("1.5MiB", "x"), 3 << 19);
  EXPECT_EQ(parse_bytes("2GB", "x"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("7b", "x"), 7);
  EXPECT_EQ(parse_bytes("1T", "x"), int64_t{1} << 40);
  for (const char* bad : {"", "many", "-1", "1Q", "1GiX", "1e30", "nan", "4 GiB"}) {
    EXPECT_EQ(message([&] { parse_bytes(bad, "SIZE"); }),
              std::string("SIZE=") + bad +
                  " is not a valid setting: allowed is a number of bytes, such as 4096, 512MiB or 4GiB");
  }
}

TEST_F(Options, BadValuesNameVariableValueAndWhatIsAllowed) {
  set("TORCH_NEURONX_DEVICE", "gpu");
  for (int i = 0; i < 2; ++i) {  // each time it is asked for
    EXPECT_EQ(message([] { option_text(Option::Device); }),
              "TORCH_NEURONX_DEVICE=gpu is not a valid setting: allowed are host, null");
  }
  EXPECT_EQ(message([] { check_environment(); }),
            "TORCH_NEURONX_DEVICE=gpu is not a valid setting: allowed are host, null");
  set("TORCH_NEURONX_EAGER_MODE", "adaptive,fast");
  EXPECT_EQ(
      message([] { option_list(Option::EagerMode); }),
      "TORCH_NEURONX_EAGER_MODE=adaptive,fast is not a valid setting: allowed are, separated by commas, adaptive, "
      "immediate, blocking, strict");
  set("TORCH_NEURONX_WINDOW_SIZE", "0");
  EXPECT_EQ(message([] { option_integer(Option::WindowSize); }),
            "TORCH_NEURONX_WINDOW_SIZE=0 is not a valid setting: allowed are integers from 1 to 65536");
  set("TORCH_NEURONX_GUARDED", "maybe");
  EXPECT_EQ(message([] { option_flag(Option::Guarded); }),
            "TORCH_NEURONX_GUARDED=maybe is not a valid setting: allowed are 1, true, yes, on and 0, false, no, off");
}

TEST_F(Options, NoticesForWhatHasNoEffect) {
  EXPECT_TRUE(option_notices().empty());
  set("NEURON_CC_FLAGS", "-O1");
  set("TORCH_NEURONX_DEVCIE", "host");
  const auto notices = option_notices();
  unsetenv("TORCH_NEURONX_DEVCIE");
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_EQ(notices[0].text, "NEURON_CC_FLAGS has no effect here: no Trainium compiler is driven");
  EXPECT_EQ(notices[1].text,
            "TORCH_NEURONX_DEVCIE is not a variable of this package; did you mean TORCH_NEURONX_DEVICE?");
}

TEST_F(Options, NearMissesOfOtherFamiliesAreNoticed) {
  set("NEURON_RT_VISIBLE_CORE", "0");
  set("NEURON_SOMETHING_ELSE", "1");
  set("TORCH_NEURON_CACHE_DIR", "x");
  set("TORCH_NEURONX_SOMETHING_ELSE", "1");
  std::vector<std::string> texts;
  for (const OptionNotice& notice : option_notices()) texts.push_back(notice.text);
  for (const char* name :
       {"NEURON_RT_VISIBLE_CORE", "NEURON_SOMETHING_ELSE", "TORCH_NEURON_CACHE_DIR", "TORCH_NEURONX_SOMETHING_ELSE"}) {
    unsetenv(name);
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(texts,
            (std::vector<std::string>{
                "NEURON_RT_VISIBLE_CORE is not a variable of this package; did you mean NEURON_RT_VISIBLE_CORES?",
                "TORCH_NEURONX_SOMETHING_ELSE is not a variable of this package",
                "TORCH_NEURON_CACHE_DIR is not a variable of this package; did you mean TORCH_NEURONX_CACHE_DIR?"}));
}

TEST_F(Options, EveryBadValueIsAProblem) {
  EXPECT_TRUE(option_problems().empty());
  set("TORCH_NEURONX_DEVICE", "gpu");
  set("TORCH_NEURONX_WINDOW_SIZE", "0");
  set("NEURON_CC_FLAGS", "-O1");
  const auto problems = option_problems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].name, "TORCH_NEURONX_DEVICE");
  EXPECT_EQ(problems[0].text, "TORCH_NEURONX_DEVICE=gpu is not a valid setting: allowed are host, null");
  EXPECT_EQ(problems[1].name, "TORCH_NEURONX_WINDOW_SIZE");
}

TEST_F(Options, DocumentationIsTheRendering) {
  std::ifstream file(NEURON_SOURCE_DIR "/docs/environment.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), render_options_markdown())
      << "regenerate it with: neuron-options --markdown > docs/environment.md";
}

TEST_F(Options, LogLevels) {
  set_log_level(0);
  EXPECT_TRUE(log_enabled(LogLevel::Warning));
  EXPECT_FALSE(log_enabled(LogLevel::Information));
  testing::internal::CaptureStderr();
  log(LogLevel::Warning, "{} of {}", 1, 2);
  log(LogLevel::Debug, "not written");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "torch_neuronx warning: 1 of 2\n");
  set_log_level(-1);
  EXPECT_FALSE(log_enabled(LogLevel::Warning));
  set_log_level(3);
  EXPECT_TRUE(log_enabled(LogLevel::Debug));
  set_log_level(0);
}

}  // namespace
