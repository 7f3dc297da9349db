#include "neuron/cache/inspection.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace neuron::cache {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamedFiles = 8;

// Where the directory would be made when it does not exist yet.
fs::path existing_parent(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path()) path = path.parent_path();
  return path;
}

void inspect_file(const fs::path& path, const std::string& build, DirectoryReport& report) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const EntryState state = check_entry(text, build);
  ++report.read;
  if (state == EntryState::Good) return;
  if (state == EntryState::OtherBuild || state == EntryState::OtherFormat) {
    ++report.other_builds;
    return;
  }
  ++report.damaged;
  if (report.damaged_files.size() < kNamedFiles) report.damaged_files.push_back(path.string());
}

}  // namespace

DirectoryReport inspect_directory(const Settings& settings, uint64_t most_read) {
  DirectoryReport report;
  report.path = settings.directory;
  report.limit = settings.disk_limit;
  if (report.path.empty()) return report;
  std::error_code error;
  report.exists = fs::is_directory(report.path, error);
  const fs::path nearest = existing_parent(fs::absolute(report.path, error));
  if (!fs::is_directory(nearest, error)) {
    report.obstacle = nearest.string() + " is not a directory";
  } else if (access(nearest.c_str(), W_OK | X_OK) != 0) {
    report.obstacle = nearest.string() + ": " + std::strerror(errno);
  }
  report.writable = report.obstacle.empty();
  if (const fs::space_info space = fs::space(nearest, error); !error)
    report.free_bytes = static_cast<int64_t>(space.available);
  error.clear();
  for (fs::recursive_directory_iterator it(report.path, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may delete what is listed
    if (it.depth() != 1 || !it->is_regular_file(gone)) continue;
    const std::string name = it->path().filename().string();
    if (is_temporary_name(name)) ++report.temporary;
    if (!is_entry_name(name)) continue;
    const auto size = it->file_size(gone);
    if (gone) continue;
    ++report.entries;
    report.bytes += size;
    if (report.read < most_read) inspect_file(it->path(), settings.build, report);
  }
  return report;
}

std::vector<PackReport> inspect_packs(const Settings& settings) {
  std::vector<PackReport> reports;
  for (const std::string& path : settings.packs) {
    PackReport& report = reports.emplace_back();
    report.path = path;
    std::string reason;
    const auto pack = Pack::open(path, settings.build, reason);
    report.state = pack != nullptr ? "good" : reason.empty() ? "missing" : reason;
    if (pack != nullptr) report.entries = pack->size();
  }
  return reports;
}

}  // namespace neuron::cache
