#include "neuron/cache/entry.h"

#include <cstring>

#include "neuron/base/error.h"
#include "neuron/base/hash.h"

namespace neuron::cache {
namespace {

constexpr char kMagic[8] = {'N', 'R', 'N', 'C', 'A', 'C', 'H', 'E'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHighSeed = 0x6e6575726f6e2d68, kLowSeed = 0x6e6575726f6e2d6c;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint64_t build;
  uint64_t key_size;
  uint64_t byte_count;
  uint64_t checksum;  // of the entry with 0 in this place
};
static_assert(sizeof(Header) == 48);

uint64_t checksum(Header header, std::string_view body) {
  header.checksum = 0;
  return hash_bytes(body.data(), body.size(), hash_bytes(&header, sizeof header));
}

}  // namespace

Blob make_blob(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {*owner, owner};
}

EntryName entry_name(std::string_view key, std::string_view build) {
  return {hash_text(key, hash_text(build, kHighSeed)), hash_text(key, hash_text(build, kLowSeed))};
}

std::string to_text(EntryName name) { return fmt::format("{:016x}{:016x}", name.high, name.low); }

std::string encode_entry(std::string_view key, std::string_view build, std::string_view bytes) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.header_size = sizeof header;
  header.build = hash_text(build);
  header.key_size = key.size();
  header.byte_count = bytes.size();
  std::string text(sizeof header, '\0');
  text.reserve(sizeof header + key.size() + bytes.size());
  text.append(key).append(bytes);
  header.checksum = checksum(header, std::string_view(text).substr(sizeof header));
  std::memcpy(text.data(), &header, sizeof header);
  return text;
}

const char* entry_state_name(EntryState state) {
  switch (state) {
    case EntryState::Good:
      return "good";
    case EntryState::OtherKey:
      return "of another key";
    case EntryState::Truncated:
      return "truncated";
    case EntryState::Damaged:
      return "damaged";
    case EntryState::OtherFormat:
      return "of another format";
    case EntryState::OtherBuild:
      return "of another build";
  }
  return "?";
}

namespace {

// The header of an entry that is whole; its key and bytes are then inside the text.
EntryState read_header(std::string_view text, std::string_view build, Header& header) {
  if (text.size() < sizeof header) return EntryState::Truncated;
  std::memcpy(&header, text.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return EntryState::Damaged;
  if (header.version != kVersion || header.header_size != sizeof header) return EntryState::OtherFormat;
  const std::string_view body = text.substr(sizeof header);
  if (header.key_size > body.size() || header.byte_count > body.size() - header.key_size) return EntryState::Truncated;
  if (header.key_size + header.byte_count != body.size() || header.checksum != checksum(header, body)) {
    return EntryState::Damaged;
  }
  return header.build == hash_text(build) ? EntryState::Good : EntryState::OtherBuild;
}

}  // namespace

EntryState check_entry(std::string_view text, std::string_view build) {
  Header header;
  return read_header(text, build, header);
}

DecodedEntry decode_entry(std::string_view text, std::string_view key, std::string_view build) {
  Header header;
  if (const EntryState state = read_header(text, build, header); state != EntryState::Good) return {state, {}};
  const std::string_view body = text.substr(sizeof header);
  if (body.substr(0, header.key_size) != key) return {EntryState::OtherKey, {}};
  return {EntryState::Good, body.substr(header.key_size)};
}

}  // namespace neuron::cache
