#include "neuron/cache/cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include "neuron/base/error.h"
#include "neuron/base/log.h"
#include "neuron/base/options.h"
#include "neuron/cache/build_id.h"
#include "neuron/cache/inspection.h"

namespace {

using namespace neuron::cache;
namespace fs = std::filesystem;

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "neuron-cache-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    directory_ = root_ / "cache";
  }
  void TearDown() override {
    std::error_code error;
    fs::permissions(directory_, fs::perms::owner_all, error);
    fs::remove_all(root_, error);
  }

  Settings settings(const std::string& build = "build-1") const {
    Settings result;
    result.directory = directory_;
    result.build = build;
    return result;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(directory_)) return found;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
    return found;
  }
  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static void overwrite(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  static std::string log_of(const std::function<void()>& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
  }
  static int run_child(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static std::string found(Cache& cache, const std::string& key) {
    const auto blob = cache.find(key);
    return blob ? std::string(blob->bytes) : "nothing";
  }

  fs::path root_, directory_;
};

TEST_F(CacheTest, MemoryThenDisk) {
  Cache first(settings());
  EXPECT_EQ(found(first, "key"), "nothing");
  EXPECT_FALSE(fs::exists(directory_)) << "reading created the directory";
  first.put("key", "bytes");
  EXPECT_EQ(found(first, "key"), "bytes");
  first.clear_memory();
  EXPECT_EQ(found(first, "key"), "bytes");
  const Statistics statistics = first.statistics();
  EXPECT_EQ(statistics.memory_hits, 1u);
  EXPECT_EQ(statistics.disk_hits, 1u);
  EXPECT_EQ(statistics.misses, 1u);
  Cache second(settings());
  EXPECT_EQ(found(second, "key"), "bytes");
  EXPECT_EQ(found(second, "kez"), "nothing");
  second.put("key", "other");
  EXPECT_EQ(found(second, "key"), "other");
}

TEST_F(CacheTest, BytesAndKeysOfEveryKind) {
  Cache cache(settings());
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  cache.put(all, all + all);
  cache.put("", "empty key");
  cache.put("empty bytes", "");
  cache.clear_memory();
  EXPECT_EQ(found(cache, all), all + all);
  EXPECT_EQ(found(cache, ""), "empty key");
  EXPECT_EQ(found(cache, "empty bytes"), "");
}

TEST_F(CacheTest, WithoutADirectoryMemoryOnly) {
  Settings memory = settings();
  memory.directory.clear();
  Cache cache(memory);
  cache.put("key", "bytes");
  EXPECT_EQ(found(cache, "key"), "bytes");
  cache.clear_memory();
  EXPECT_EQ(found(cache, "key"), "nothing");
}

TEST_F(CacheTest, MemoryKeepsTheMostRecentlyUsed) {
  Settings small = settings();
  small.directory.clear();
  small.memory_limit = 300;
  Cache cache(small);
  for (const char* key : {"a", "b", "c"}) cache.put(key, std::string(90, *key));
  EXPECT_NE(found(cache, "a"), "nothing");
  cache.put("d", std::string(90, 'd'));
  EXPECT_EQ(found(cache, "b"), "nothing");
  EXPECT_EQ(found(cache, "a"), std::string(90, 'a'));
  EXPECT_EQ(found(cache, "d"), std::string(90, 'd'));
  cache.put("huge", std::string(1000, 'h'));
  EXPECT_EQ(found(cache, "huge"), "nothing");
  EXPECT_EQ(found(cache, "a"), std::string(90, 'a'));
}

TEST_F(CacheTest, DamageAtEveryByteIsAMissAndIsReplaced) {
  Cache(settings()).put("some key", "the bytes of a program");
  ASSERT_EQ(files().size(), 1u);
  const fs::path path = files()[0];
  const std::string good = content(path);
  for (size_t i = 0; i < good.size(); ++i) {
    for (unsigned char change : {0x01, 0x80}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ change);
      overwrite(path, bad);
      Cache cache(settings());
      std::string result;
      const std::string log = log_of([&] { result = found(cache, "some key"); });
      ASSERT_EQ(result, "nothing") << "byte " << i;
      ASSERT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
      ASSERT_EQ(cache.statistics().damaged, 1u);
      const Blob made = cache.get_or_create("some key", [] { return std::string("the bytes of a program"); });
      ASSERT_EQ(made.bytes, "the bytes of a program");
      ASSERT_EQ(content(path), good);
    }
  }
}

TEST_F(CacheTest, TruncationAtEveryLengthAndTrailingBytes) {
  Cache(settings()).put("some key", "the bytes of a program");
  const fs::path path = files()[0];
  const std::string good = content(path);
  for (size_t length = 0; length < good.size(); ++length) {
    overwrite(path, good.substr(0, length));
    Cache cache(settings());
    const std::string log = log_of([&] { ASSERT_EQ(found(cache, "some key"), "nothing") << length; });
    ASSERT_NE(log.find("is truncated and is not used"), std::string::npos) << log;
  }
  overwrite(path, good + "x");
  Cache cache(settings());
  const std::string log = log_of([&] { EXPECT_EQ(found(cache, "some key"), "nothing"); });
  EXPECT_NE(log.find("is damaged"), std::string::npos);
}

TEST_F(CacheTest, AnotherBuildHasItsOwnEntries) {
  Cache first(settings("build-1")), second(settings("build-2"));
  first.put("key", "one");
  EXPECT_EQ(found(second, "key"), "nothing");
  second.put("key", "two");
  first.clear_memory();
  EXPECT_EQ(found(first, "key"), "one");
  // A file of build 1 in the place of one of build 2 is told from it.
  const auto all = files();
  ASSERT_EQ(all.size(), 2u);
  const std::string a = content(all[0]), b = content(all[1]);
  overwrite(all[0], b);
  overwrite(all[1], a);
  second.clear_memory();
  const std::string log = log_of([&] { EXPECT_EQ(found(second, "key"), "nothing"); });
  EXPECT_NE(log.find("of another build"), std::string::npos);
}

TEST_F(CacheTest, ForeignFilesAreLeftAlone) {
  Cache cache(settings());
  cache.put("key", "bytes");
  const fs::path note = files()[0].parent_path() / "README";
  overwrite(note, std::string(1000, 'x'));
  Settings tight = settings();
  tight.disk_limit = 400;
  Cache second(tight);
  for (int i = 0; i < 10; ++i) second.put("k" + std::to_string(i), std::string(100, 'v'));
  EXPECT_TRUE(fs::exists(note));
  EXPECT_GT(second.statistics().evicted, 0u);
}

TEST_F(CacheTest, CreatesOnceForManyThreads) {
  Cache cache(settings());
  std::atomic<int> created{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int key = 0; key < 20; ++key) {
        const Blob blob = cache.get_or_create(std::to_string(key), [&] {
          ++created;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return "value " + std::to_string(key);
        });
        EXPECT_EQ(blob.bytes, "value " + std::to_string(key));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(created, 20);
  EXPECT_EQ(cache.statistics().created, 20u);
}

TEST_F(CacheTest, FailuresReachEveryWaiterAndLeaveNothing) {
  Cache cache(settings());
  std::atomic<int> tried{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        cache.get_or_create("key", [&]() -> std::string {
          ++tried;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          throw neuron::Error(neuron::ErrorKind::Runtime, "no compiler");
        });
      } catch (const neuron::Error& error) {
        EXPECT_STREQ(error.what(), "no compiler");
        ++failed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 4);
  EXPECT_GE(tried, 1);
  EXPECT_EQ(cache.get_or_create("key", [] { return std::string("now"); }).bytes, "now");
}

TEST_F(CacheTest, EvictsTheLeastRecentlyUsed) {
  Settings tight = settings();
  tight.disk_limit = 100'000;
  tight.memory_limit = 0;
  Cache cache(tight);
  for (int i = 0; i < 9; ++i) cache.put("k" + std::to_string(i), std::string(10'000, 'v'));
  const auto past = fs::file_time_type::clock::now() - std::chrono::minutes(10);
  for (const auto& file : files()) fs::last_write_time(file, past);
  EXPECT_NE(found(cache, "k0"), "nothing");  // used again
  for (int i = 9; i < 14; ++i) cache.put("k" + std::to_string(i), std::string(10'000, 'v'));
  int64_t total = 0;
  for (const auto& file : files()) total += static_cast<int64_t>(fs::file_size(file));
  EXPECT_LE(total, tight.disk_limit);
  EXPECT_NE(found(cache, "k0"), "nothing");
  for (int i = 9; i < 14; ++i) EXPECT_NE(found(cache, "k" + std::to_string(i)), "nothing") << i;
  EXPECT_GE(cache.statistics().evicted, 4u);
}

TEST_F(CacheTest, OldTemporaryFilesAreRemoved) {
  Cache cache(settings());
  cache.put("key", "bytes");
  const fs::path folder = files()[0].parent_path();
  overwrite(folder / "writing-1-old", "x");
  overwrite(folder / "writing-1-new", "x");
  fs::last_write_time(folder / "writing-1-old", fs::file_time_type::clock::now() - std::chrono::hours(2));
  Cache(settings()).put("other", "bytes");
  EXPECT_FALSE(fs::exists(folder / "writing-1-old"));
  EXPECT_TRUE(fs::exists(folder / "writing-1-new"));
}

TEST_F(CacheTest, AnUnusableDirectoryIsLoggedOnce) {
  overwrite(root_ / "file", "x");
  Settings bad = settings();
  bad.directory = root_ / "file" / "cache";
  Cache cache(bad);
  const std::string log = log_of([&] {
    for (int i = 0; i < 5; ++i) cache.put("k" + std::to_string(i), "bytes");
  });
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_NE(log.find("Compiled programs are kept in memory only"), std::string::npos);
  EXPECT_EQ(found(cache, "k3"), "bytes");
}

TEST_F(CacheTest, AReadOnlyDirectoryIsStillRead) {
  Cache(settings()).put("key", "bytes");
  fs::permissions(root_, fs::perms::all);
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0555) : fs::perms(0444));
  }
  fs::permissions(directory_, fs::perms(0555));
  EXPECT_EQ(run_child([&] {
              if (geteuid() == 0 && setuid(65534) != 0) return 2;  // permissions do not bind the superuser
              neuron::set_log_level(-1);
              Cache cache(settings());
              if (found(cache, "key") != "bytes") return 3;
              for (int i = 0; i < 30; ++i) cache.put("k" + std::to_string(i), "bytes");
              if (found(cache, "k1") != "bytes") return 4;
              cache.clear_memory();
              return found(cache, "k1") == "nothing" && found(cache, "key") == "bytes" ? 0 : 5;
            }),
            0);
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    if (entry.is_directory()) fs::permissions(entry.path(), fs::perms::owner_all);
  }
}

TEST_F(CacheTest, AFailedWriteLeavesNothing) {
  EXPECT_EQ(run_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1000, 1000};
              setrlimit(RLIMIT_FSIZE, &limit);
              neuron::set_log_level(-1);
              Cache cache(settings());
              cache.put("key", std::string(5000, 'v'));
              return found(cache, "key").size() == 5000 ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(files().empty());
}

TEST_F(CacheTest, AWriterThatIsKilledLeavesNoBadEntry) {
  std::mt19937 random(3);
  auto value = [](int key) { return std::string(60'000 + key * 1000, static_cast<char>('a' + key)); };
  for (int round = 0; round < 15; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      DiskStore store(directory_, int64_t{1} << 30, "build-1");
      for (int key = 0;; key = (key + 1) % 20) store.put(std::to_string(key), value(key));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 8000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    Cache cache(settings());
    for (int key = 0; key < 20; ++key) {
      const std::string result = found(cache, std::to_string(key));
      EXPECT_TRUE(result == "nothing" || result == value(key)) << "round " << round << " key " << key;
    }
    EXPECT_EQ(cache.statistics().damaged, 0u);
  }
}

TEST_F(CacheTest, TwoProcessesShareADirectory) {
  auto work = [&](int self) {
    Settings tight = settings();
    tight.memory_limit = 0;
    tight.disk_limit = 60'000;  // both evict, too
    Cache cache(tight);
    for (int i = 0; i < 400; ++i) {
      const int key = (i * 7 + self * 3) % 30;
      const std::string expected = std::string(4000, static_cast<char>('A' + key));
      const std::string got(cache.get_or_create(std::to_string(key), [&] { return expected; }).bytes);
      if (got != expected) return 1;
    }
    return cache.statistics().damaged == 0 ? 0 : 2;
  };
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(work(1));
  }
  EXPECT_EQ(work(0), 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(CacheTest, PacksAreConsultedBeforeTheDirectory) {
  Settings packed = settings();
  packed.packs = {(root_ / "missing.pack").string(), (root_ / "kernels.pack").string()};
  std::vector<std::pair<std::string, std::string>> entries;
  for (int i = 0; i < 100; ++i) entries.emplace_back("key " + std::to_string(i), "packed " + std::to_string(i));
  write_pack(packed.packs[1], "build-1", entries);
  Cache cache(packed);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(found(cache, "key " + std::to_string(i)), "packed " + std::to_string(i));
  }
  EXPECT_EQ(found(cache, "key 100"), "nothing");
  EXPECT_EQ(cache.statistics().pack_hits, 100u);
  EXPECT_EQ(cache.get_or_create("key 7", [] { return std::string("created"); }).bytes, "packed 7");
  EXPECT_TRUE(files().empty());
}

TEST_F(CacheTest, PackBytesOutliveTheCache) {
  const std::string path = root_ / "kernels.pack";
  const std::vector<std::pair<std::string, std::string>> entries{{"key", "bytes"}};
  write_pack(path, "b", entries);
  Blob blob = *Pack::open(path, "b")->find("key");
  EXPECT_EQ(blob.bytes, "bytes");
}

TEST_F(CacheTest, BadPacksAreRefused) {
  const std::string path = root_ / "kernels.pack";
  const std::vector<std::pair<std::string, std::string>> entries{{"a", "bytes of a"}, {"b", "bytes of b"}};
  write_pack(path, "build-1", entries);
  const std::string good = content(path);
  EXPECT_EQ(Pack::open(root_ / "none", "build-1"), nullptr);
  const std::string log = log_of([&] { EXPECT_EQ(Pack::open(path, "build-2"), nullptr); });
  EXPECT_NE(log.find("of another build"), std::string::npos);
  neuron::set_log_level(-1);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    overwrite(path, bad);
    const auto pack = Pack::open(path, "build-1");
    int found_entries = 0;
    for (const auto& [key, bytes] : entries) {
      const auto blob = pack ? pack->find(key) : std::nullopt;
      if (!blob) continue;
      EXPECT_EQ(blob->bytes, bytes);
      ++found_entries;
    }
    EXPECT_LT(found_entries, 2) << "byte " << i;
  }
  for (size_t length = 0; length < good.size(); ++length) {
    overwrite(path, good.substr(0, length));
    EXPECT_EQ(Pack::open(path, "build-1"), nullptr) << length;
  }
  neuron::set_log_level(0);
  EXPECT_THROW(write_pack(root_ / "no" / "folder", "b", entries), neuron::Error);
}

TEST_F(CacheTest, SettingsOfTheEnvironment) {
  auto directory = [](std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const char* name : {"TORCH_NEURONX_CACHE_DIR", "TORCH_NEURONX_NEFF_CACHE_DIR", "XDG_CACHE_HOME", "HOME",
                             "TORCH_NEURONX_DISABLE_NEFF_CACHE", "TORCH_NEURONX_CACHE_SIZE"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    neuron::reload_options();
    return environment_settings().directory;
  };
  EXPECT_EQ(run_child([&] {
              const bool good =
                  directory({{"HOME", "/home/u"}}) == "/home/u/.cache/torch_neuronx" &&
                  directory({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/x"}}) == "/x/torch_neuronx" &&
                  directory({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "x"}}) == "/home/u/.cache/torch_neuronx" &&
                  directory({{"TORCH_NEURONX_NEFF_CACHE_DIR", "/n"}}) == "/n" &&
                  directory({{"TORCH_NEURONX_NEFF_CACHE_DIR", "/n"}, {"TORCH_NEURONX_CACHE_DIR", "/c"}}) == "/c" &&
                  directory({{"TORCH_NEURONX_CACHE_DIR", "/c"}, {"TORCH_NEURONX_DISABLE_NEFF_CACHE", "1"}}).empty() &&
                  directory({}).empty() && environment_settings().disk_limit == int64_t{1} << 30;
              return good ? 0 : 1;
            }),
            0);
}

TEST_F(CacheTest, InspectionTellsWhatLiesThereAndChangesNothing) {
  const DirectoryReport none = inspect_directory(settings());
  EXPECT_FALSE(none.exists);
  EXPECT_TRUE(none.writable);
  EXPECT_FALSE(fs::exists(directory_));

  Cache(settings("build-2")).put("foreign", "bytes");
  const fs::path foreign = files()[0];
  Cache cache(settings());
  for (int i = 0; i < 5; ++i) cache.put("k" + std::to_string(i), std::string(100, 'v'));
  auto all = files();
  all.erase(std::find(all.begin(), all.end(), foreign));
  ASSERT_EQ(all.size(), 5u);
  overwrite(all[0], content(all[0]).substr(0, 60));
  std::string bad = content(all[1]);
  bad[70] = static_cast<char>(bad[70] ^ 1);
  overwrite(all[1], bad);
  overwrite(foreign.parent_path() / "writing-1-x", "x");
  overwrite(foreign.parent_path() / "README", "x");
  const DirectoryReport report = inspect_directory(settings());
  EXPECT_TRUE(report.exists);
  EXPECT_EQ(report.entries, 6u);
  EXPECT_EQ(report.read, 6u);
  EXPECT_EQ(report.damaged, 2u);
  EXPECT_EQ(report.damaged_files.size(), 2u);
  EXPECT_EQ(report.other_builds, 1u);
  EXPECT_EQ(report.temporary, 1u);
  EXPECT_GT(report.bytes, 300u);
  EXPECT_GT(report.free_bytes, 0);
  EXPECT_EQ(files().size(), 8u);

  const DirectoryReport sample = inspect_directory(settings(), 2);
  EXPECT_EQ(sample.read, 2u);
  EXPECT_EQ(sample.entries, 6u);
  EXPECT_EQ(sample.bytes, report.bytes);

  Settings blocked = settings();
  blocked.directory = foreign / "below a file";
  EXPECT_FALSE(inspect_directory(blocked).writable);
  EXPECT_NE(inspect_directory(blocked).obstacle.find("is not a directory"), std::string::npos);
}

TEST_F(CacheTest, InspectionOfPacks) {
  Settings packed = settings();
  packed.packs = {(root_ / "missing.pack").string(), (root_ / "good.pack").string(), (root_ / "other.pack").string()};
  const std::vector<std::pair<std::string, std::string>> entries{{"a", "1"}, {"b", "2"}};
  write_pack(packed.packs[1], "build-1", entries);
  write_pack(packed.packs[2], "build-2", entries);
  const std::string log = log_of([&] {
    const auto reports = inspect_packs(packed);
    ASSERT_EQ(reports.size(), 3u);
    EXPECT_EQ(reports[0].state, "missing");
    EXPECT_EQ(reports[1].state, "good");
    EXPECT_EQ(reports[1].entries, 2u);
    EXPECT_EQ(reports[2].state, "of another build");
  });
  EXPECT_EQ(log, "");
}

TEST_F(CacheTest, BuildIds) {
  EXPECT_EQ(library_build_id((root_ / "none").string()), "");
  overwrite(root_ / "plain", "not a library");
  EXPECT_EQ(library_build_id((root_ / "plain").string()).size(), 16u);
  EXPECT_GE(library_build_id(own_library_path()).size(), 16u);
  EXPECT_FALSE(build_id().empty());
}

}  // namespace
