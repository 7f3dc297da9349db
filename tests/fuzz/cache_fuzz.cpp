// What a cache reads: entries, packs and directories that anything may have happened to. The answer is the bytes that
// were stored under the key, or nothing.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "neuron/base/hash.h"
#include "neuron/base/log.h"
#include "neuron/cache/cache.h"
#include "neuron/cache/entry.h"
#include "neuron/cache/pack.h"
#include "tests/fuzz/input.h"

namespace neuron::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBuild = "build";

// In memory where there is such a place: one directory for each run of the process.
const std::string& folder() {
  // Not destroyed: it is needed at exit.
  static const std::string& path = *new std::string([] {
    set_log_level(-1);
    const fs::path base = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string pattern = (base / "neuron-cache-fuzz-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) finding("no temporary directory");
    std::atexit([] {
      std::error_code error;
      fs::remove_all(folder(), error);
    });
    return pattern;
  }());
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// A sum over the bytes that nobody can forge by chance stands between damage and everything behind it: half of the
// inputs repair it, so that the checks behind are reached. `at` is its place in the text.
void set_sum(std::string& text, size_t at, uint64_t sum) { std::memcpy(text.data() + at, &sum, sizeof sum); }

void damage(Input& input, std::string& text) {
  for (size_t changes = 1 + input.pick(4); changes > 0 && !text.empty(); --changes) {
    // Headers are where the structure is.
    const size_t reach = input.chance(2) ? text.size() : std::min<size_t>(text.size(), 96);
    const size_t at = input.pick(reach);
    switch (input.pick(5)) {
      case 0:
        text[at] = static_cast<char>(input.byte());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << input.pick(8)));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.insert(at, input.text(1 + input.pick(8)));
        break;
      case 4:
        for (size_t i = 0, count = std::min<size_t>(8, text.size() - at); i < count; ++i)
          text[at + i] = static_cast<char>(input.byte());
        break;
    }
  }
}

void fuzz_entry(Input& input) {
  const std::string key = input.text(input.pick(24)), value = input.text(input.pick(64));
  std::string text = input.chance(3) ? input.text(200) : cache::encode_entry(key, kBuild, value);
  if (!input.chance(4)) damage(input, text);
  const bool repaired = input.chance(2) && text.size() >= 48;
  if (repaired) {
    set_sum(text, 40, 0);
    set_sum(text, 40, hash_bytes(text.data() + 48, text.size() - 48, hash_bytes(text.data(), 48)));
  }
  const cache::DecodedEntry entry = cache::decode_entry(text, key, kBuild);
  if (std::string_view(cache::entry_state_name(entry.state)) == "?") finding("a state without a name");
  if (entry.state != cache::EntryState::Good) return;
  const bool inside = entry.bytes.empty() || (entry.bytes.data() >= text.data() &&
                                              entry.bytes.data() + entry.bytes.size() <= text.data() + text.size());
  if (!inside) finding("the bytes of an entry lie outside its text");
  if (!repaired && entry.bytes != value) finding("damage that the sum does not see");
}

void fuzz_pack(Input& input) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (size_t i = 0, count = input.pick(5); i < count; ++i)
    entries.emplace_back(fmt::format("key {}", i), input.text(input.pick(40)));
  const std::string path = folder() + "/kernels.pack";
  cache::write_pack(path, kBuild, entries);
  std::string text = read_file(path);
  if (!input.chance(4)) damage(input, text);
  bool repaired = false;
  if (input.chance(2) && text.size() >= 40) {
    uint64_t count = 0;
    std::memcpy(&count, text.data() + 16, sizeof count);
    if (count <= (text.size() - 40) / 32) {
      set_sum(text, 24, text.size());
      set_sum(text, 32, hash_bytes(text.data() + 40, count * 32));
      repaired = true;
    }
  }
  write_file(path, text);
  const auto pack = cache::Pack::open(path, kBuild);
  if (pack == nullptr) return;
  for (const auto& [key, value] : entries) {
    const auto blob = pack->find(key);
    if (blob && blob->bytes != value) finding("the pack answers {} with other bytes (repaired: {})", key, repaired);
  }
  pack->find(input.text(8));
}

// A directory under two caches of one build, with damage in between, against what was put last.
void fuzz_directory(Input& input) {
  const std::string directory = folder() + "/directory";
  std::error_code error;
  fs::remove_all(directory, error);
  cache::Settings settings;
  settings.directory = directory;
  settings.build = kBuild;
  settings.disk_limit = static_cast<int64_t>(1) << (8 + input.pick(8));
  settings.memory_limit = input.chance(2) ? 0 : 1 << 10;
  std::optional<cache::Cache> caches[2];
  for (auto& one : caches) one.emplace(settings);
  // Every value a key ever had: one cache may hold an older one in memory.
  std::map<std::string, std::vector<std::string>> stored;
  auto check = [&](const std::string& key, const std::optional<cache::Blob>& blob) {
    if (!blob) return;
    const auto& values = stored[key];
    if (std::find(values.begin(), values.end(), blob->bytes) == values.end())
      finding("the cache answers {} with bytes never stored", key);
  };
  for (int step = 0; step < 40 && !input.empty(); ++step) {
    const std::string key = fmt::format("k{}", input.pick(6));
    auto& one = caches[input.pick(2)];
    switch (input.pick(6)) {
      case 0:
      case 1: {
        const std::string value = input.text(input.pick(120));
        stored[key].push_back(value);
        one->put(key, value);
        break;
      }
      case 2:
        check(key, one->find(key));
        break;
      case 3: {
        const std::string value = input.text(input.pick(30));
        stored[key].push_back(value);
        check(key, one->get_or_create(key, [&] { return value; }));
        break;
      }
      case 4:
        one.emplace(settings);
        break;
      case 5: {
        std::vector<std::string> files;
        for (const auto& entry : fs::recursive_directory_iterator(directory, error)) {
          if (entry.is_regular_file()) files.push_back(entry.path());
        }
        if (files.empty()) break;
        std::sort(files.begin(), files.end());
        const std::string path = files[input.pick(files.size())];
        switch (input.pick(4)) {
          case 0: {
            std::string text = read_file(path);
            damage(input, text);
            write_file(path, text);
            break;
          }
          case 1:
            unlink(path.c_str());
            break;
          case 2:  // an entry in the place of another one
            write_file(path, read_file(files[input.pick(files.size())]));
            break;
          case 3:
            unlink(path.c_str());
            mkdir(path.c_str(), 0755);
            break;
        }
        break;
      }
    }
  }
}

}  // namespace
}  // namespace neuron::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neuron::fuzz::Input input(data, size);
  try {
    switch (input.pick(3)) {
      case 0:
        neuron::fuzz::fuzz_entry(input);
        break;
      case 1:
        neuron::fuzz::fuzz_pack(input);
        break;
      default:
        neuron::fuzz::fuzz_directory(input);
    }
  } catch (const neuron::Error& error) {
    neuron::fuzz::finding("an error where none is allowed: {}", error.what());
  }
  return 0;
}
