#include "neuron/cache/pack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/hash.h"
#include "neuron/base/log.h"

namespace neuron::cache {

// Sorted by name; offset and size are those of an encoded entry.
struct Pack::IndexEntry {
  EntryName name;
  uint64_t offset, size;
};

namespace {

constexpr char kMagic[8] = {'N', 'R', 'N', 'P', 'A', 'C', 'K', '1'};

struct Header {
  char magic[8];
  uint64_t build;
  uint64_t count;
  uint64_t file_size;
  uint64_t checksum;  // of the index
};
static_assert(sizeof(Header) == 40);

}  // namespace

std::unique_ptr<Pack> Pack::open(const std::string& path, std::string_view build) {
  std::string reason;
  auto pack = open(path, build, reason);
  if (!reason.empty()) {
    log(LogLevel::Warning, "the pack of compiled programs {} is {} and is not used", path, reason);
  }
  return pack;
}

std::unique_ptr<Pack> Pack::open(const std::string& path, std::string_view build, std::string& reason) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status;
  void* memory = MAP_FAILED;
  size_t size = 0;
  if (fstat(descriptor, &status) == 0 && status.st_size > 0) {
    size = static_cast<size_t>(status.st_size);
    memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  ::close(descriptor);
  auto refuse = [&](const char* why) {
    reason = why;
    return nullptr;
  };
  if (memory == MAP_FAILED) return refuse("empty or unreadable");
  std::unique_ptr<Pack> pack(new Pack);
  pack->mapping_ =
      std::shared_ptr<const void>(memory, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  pack->text_ = {static_cast<const char*>(memory), size};
  Header header;
  if (size < sizeof header) return refuse("truncated");
  std::memcpy(&header, memory, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return refuse("not a pack of this format");
  if (header.build != hash_text(build)) return refuse("of another build");
  if (header.file_size != size || header.count > (size - sizeof header) / sizeof(IndexEntry))
    return refuse("truncated");
  pack->index_ = reinterpret_cast<const IndexEntry*>(static_cast<const char*>(memory) + sizeof header);
  pack->count_ = header.count;
  if (hash_bytes(pack->index_, header.count * sizeof(IndexEntry)) != header.checksum) return refuse("damaged");
  pack->path_ = path;
  pack->build_ = build;
  return pack;
}

std::optional<Blob> Pack::find(std::string_view key) const {
  const EntryName name = entry_name(key, build_);
  const IndexEntry* end = index_ + count_;
  const IndexEntry* found = std::lower_bound(
      index_, end, name, [](const IndexEntry& entry, EntryName wanted) { return entry.name < wanted; });
  if (found == end || found->name != name) return std::nullopt;
  if (found->offset > text_.size() || found->size > text_.size() - found->offset) return std::nullopt;
  const DecodedEntry entry = decode_entry(text_.substr(found->offset, found->size), key, build_);
  if (entry.state == EntryState::Good) return Blob{entry.bytes, mapping_};
  if (entry.state != EntryState::OtherKey) {
    log(LogLevel::Warning, "an entry of the pack of compiled programs {} is {} and is not used", path_,
        entry_state_name(entry.state));
  }
  return std::nullopt;
}

void write_pack(const std::string& path, std::string_view build,
                std::span<const std::pair<std::string, std::string>> entries) {
  struct IndexRow {
    EntryName name;
    uint64_t offset, size;
  };
  std::map<EntryName, std::string> sorted;
  for (const auto& [key, bytes] : entries) sorted[entry_name(key, build)] = encode_entry(key, build, bytes);
  std::vector<IndexRow> index;
  uint64_t offset = sizeof(Header) + sorted.size() * sizeof(IndexRow);
  for (const auto& [name, text] : sorted) {
    index.push_back({name, offset, text.size()});
    offset += text.size();
  }
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.build = hash_text(build);
  header.count = index.size();
  header.file_size = offset;
  header.checksum = hash_bytes(index.data(), index.size() * sizeof(IndexRow));
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.write(reinterpret_cast<const char*>(index.data()),
             static_cast<std::streamsize>(index.size() * sizeof(IndexRow)));
  for (const auto& [name, text] : sorted) file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    fail(ErrorKind::Runtime, "cannot write the pack of compiled programs {}", path);
  }
}

}  // namespace neuron::cache
