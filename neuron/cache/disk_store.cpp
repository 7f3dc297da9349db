#include "neuron/cache/disk_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <vector>

#include "neuron/base/log.h"

namespace neuron::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = "writing-";
// Far longer than any write takes.
constexpr auto kTemporaryAge = std::chrono::hours(1);

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool read_all(int descriptor, std::string& text) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  text.resize(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = read(descriptor, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return true;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string temporary_name() {
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) ^ static_cast<uint64_t>(getpid())};
  // The process is part of it because a forked child has the same random numbers.
  return fmt::format("{}{}-{:016x}", kTemporaryPrefix, getpid(), random());
}

}  // namespace

bool is_entry_name(std::string_view name) {
  return name.size() == 30 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool is_temporary_name(std::string_view name) { return name.starts_with(kTemporaryPrefix); }

DiskStore::DiskStore(std::string directory, int64_t limit_bytes, std::string build)
    : directory_(std::move(directory)), limit_(limit_bytes), build_(std::move(build)) {}

// 256 folders, so that none gets too long to list.
std::string DiskStore::path_of(std::string_view key) const {
  const std::string name = to_text(entry_name(key, build_));
  return fmt::format("{}/{}/{}", directory_, name.substr(0, 2), name.substr(2));
}

std::optional<Blob> DiskStore::find(std::string_view key) {
  const std::string path = path_of(key);
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return std::nullopt;
  auto text = std::make_shared<std::string>();
  if (!read_all(file.get(), *text)) {
    report_failure("read", path, errno);
    return std::nullopt;
  }
  const DecodedEntry entry = decode_entry(*text, key, build_);
  if (entry.state == EntryState::OtherKey) return std::nullopt;
  if (entry.state != EntryState::Good) {
    damaged_.fetch_add(1, std::memory_order_relaxed);
    log(LogLevel::Warning, "the cache entry {} is {} and is not used", path, entry_state_name(entry.state));
    // Another process may have just replaced it: then one good entry is lost, which costs a compilation.
    unlink(path.c_str());
    return std::nullopt;
  }
  futimens(file.get(), nullptr);  // the order of use, for eviction; fails harmlessly where writing is forbidden
  return Blob{entry.bytes, text};
}

void DiskStore::put(std::string_view key, std::string_view bytes) {
  if (!writable_.load(std::memory_order_relaxed)) return;
  const std::string text = encode_entry(key, build_, bytes);
  if (static_cast<int64_t>(text.size()) > limit_) return;
  if (!write_file(path_of(key), text)) return;
  std::lock_guard lock(size_mutex_);
  estimated_size_ += static_cast<int64_t>(text.size());
  unscanned_ += static_cast<int64_t>(text.size());
  // Other processes write too: now and then the directory itself is asked.
  if (!scanned_ || estimated_size_ > limit_ || unscanned_ > limit_ / 16) enforce_limit();
}

bool DiskStore::write_file(const std::string& path, std::string_view text) {
  std::error_code error;
  const std::string folder = path.substr(0, path.rfind('/'));
  fs::create_directories(folder, error);
  if (error) {
    report_failure("create", folder, error.value());
    return false;
  }
  const std::string temporary = folder + "/" + temporary_name();
  {
    const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file.get() < 0) {
      report_failure("create", temporary, errno);
      return false;
    }
    if (!write_all(file.get(), text)) {
      report_failure("write", temporary, errno);
      unlink(temporary.c_str());
      return false;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    report_failure("rename", temporary, errno);
    unlink(temporary.c_str());
    return false;
  }
  return true;
}

void DiskStore::report_failure(const char* what, const std::string& path, int error) {
  // A full disk may get room again; a forbidden directory stays forbidden.
  if (error != ENOSPC && error != EDQUOT && error != EINTR && std::strcmp(what, "read") != 0) {
    writable_.store(false, std::memory_order_relaxed);
  }
  if (failure_reported_.exchange(true)) return;
  log(LogLevel::Warning, "cannot {} {} in the cache: {}. Compiled programs are kept in memory only", what, path,
      std::strerror(error));
}

// Deletes the least recently used entries until the directory is a tenth below its limit, and temporary files nobody
// can still be writing.
void DiskStore::enforce_limit() {
  struct Found {
    fs::file_time_type used;
    int64_t size;
    std::string path;
  };
  std::vector<Found> entries;
  int64_t total = 0;
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory_, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may delete what is listed
    if (!it->is_regular_file(gone) || it.depth() != 1) continue;
    const auto used = it->last_write_time(gone);
    const auto size = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    const std::string name = it->path().filename().string();
    if (is_temporary_name(name)) {
      if (now - used > kTemporaryAge) unlink(it->path().c_str());
      continue;
    }
    if (!is_entry_name(name)) continue;  // not ours
    total += size;
    entries.push_back({used, size, it->path().string()});
  }
  if (total > limit_) {
    std::sort(entries.begin(), entries.end(), [](const Found& a, const Found& b) { return a.used < b.used; });
    const int64_t target = limit_ / 10 * 9;
    for (const Found& entry : entries) {
      if (total <= target) break;
      if (unlink(entry.path.c_str()) == 0 || errno == ENOENT) {
        total -= entry.size;
        evicted_.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }
  scanned_ = true;
  estimated_size_ = total;
  unscanned_ = 0;
}

}  // namespace neuron::cache
