// Runs a fuzz target without libFuzzer: the files and folders that are named, and on demand random changes of them. So
// inputs that once were findings, and a short walk around the seeds, are part of every test run.
//
//   <target>_replay [--random COUNT] [FILE or FOLDER]...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/input.h"

namespace {

namespace fs = std::filesystem;

void add_files(const fs::path& path, std::vector<fs::path>& files) {
  if (!fs::is_directory(path)) return files.push_back(path);
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::string change(std::string text, const std::vector<std::string>& seeds, std::mt19937& random) {
  auto pick = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  for (size_t changes = 1 + pick(4); changes > 0; --changes) {
    const size_t at = pick(text.size() + 1);
    switch (pick(4)) {
      case 0:
        text.insert(at, 1, static_cast<char>(pick(256)));
        break;
      case 1:
        text.erase(at, 1 + pick(8));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(pick(256));
        break;
      default: {  // a piece of another seed
        const std::string& other = seeds[pick(seeds.size())];
        if (!other.empty()) text.insert(at, other.substr(pick(other.size()), 1 + pick(40)));
      }
    }
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  int random_inputs = 0;
  std::vector<fs::path> files;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) == "--random" && i + 1 < count) {
      random_inputs = std::atoi(arguments[++i]);
    } else {
      add_files(arguments[i], files);
    }
  }
  std::vector<std::string> seeds;
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", path.c_str());
      return 2;
    }
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    std::fprintf(stderr, "%s\n", path.c_str());
    run(seeds.back());
  }
  std::mt19937 random(1);
  // Where nobody wrote a seed any bytes are an input: every second one is new.
  const bool any_bytes = seeds.empty();
  auto random_text = [&](size_t size) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  if (any_bytes) seeds = {random_text(40), random_text(200), random_text(1000)};
  for (int i = 0; i < random_inputs; ++i) {
    const bool fresh = any_bytes && i % 2 == 1;
    run(fresh ? random_text(size_t{40} << random() % 7)
              : change(seeds[static_cast<size_t>(i) % seeds.size()], seeds, random));
  }
  std::printf("%zu files, %d random inputs\n", files.size(), random_inputs);
  return 0;
}
