// The form of one cache entry, on disk and in a pack: a header, the whole key, the bytes. Everything is checked when it
// is read: an entry that is damaged, cut short, of another format or of another build is told from a good one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace neuron::cache {

// Bytes somebody else keeps alive.
struct Blob {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};
Blob make_blob(std::string bytes);

// Where an entry of a key and a build is kept: 32 hexadecimal digits.
struct EntryName {
  uint64_t high = 0, low = 0;
  friend auto operator<=>(const EntryName&, const EntryName&) = default;
};
EntryName entry_name(std::string_view key, std::string_view build);
std::string to_text(EntryName name);

std::string encode_entry(std::string_view key, std::string_view build, std::string_view bytes);

enum class EntryState : uint8_t {
  Good,
  OtherKey,     // two keys with one name: a miss, nothing wrong
  Truncated,    // shorter than its header says
  Damaged,      // not what was written
  OtherFormat,  // written by another version of this package
  OtherBuild,   // written by another build of this package
};
const char* entry_state_name(EntryState state);

struct DecodedEntry {
  EntryState state = EntryState::Damaged;
  std::string_view bytes;  // inside the text, when Good
};
DecodedEntry decode_entry(std::string_view text, std::string_view key, std::string_view build);
// The same without a key: never OtherKey.
EntryState check_entry(std::string_view text, std::string_view build);

}  // namespace neuron::cache
