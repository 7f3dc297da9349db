#include "neuron/cache/build_id.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "neuron/base/error.h"
#include "neuron/base/hash.h"

namespace neuron::cache {
namespace {

size_t padded(size_t size) { return (size + 3) / 4 * 4; }

std::string build_id_in_notes(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
    if (name + content > notes.size()) return "";
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(0, 4) == std::string_view("GNU", 4)) {
      std::string text;
      for (unsigned char byte : notes.substr(name, note.n_descsz)) text += fmt::format("{:02x}", byte);
      return text;
    }
    notes.remove_prefix(name + content);
  }
  return "";
}

std::string read_at(std::ifstream& file, uint64_t offset, size_t size) {
  std::string text(size, '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(text.data(), static_cast<std::streamsize>(size));
  return file ? text : "";
}

std::string build_id_of(std::ifstream& file) {
  const std::string head = read_at(file, 0, sizeof(Elf64_Ehdr));
  if (head.size() < sizeof(Elf64_Ehdr) || head.compare(0, SELFMAG, ELFMAG) != 0) return "";
  Elf64_Ehdr elf;
  std::memcpy(&elf, head.data(), sizeof elf);
  for (int i = 0; i < elf.e_phnum; ++i) {
    const std::string row = read_at(file, elf.e_phoff + static_cast<uint64_t>(i) * elf.e_phentsize, sizeof(Elf64_Phdr));
    if (row.empty()) return "";
    Elf64_Phdr segment;
    std::memcpy(&segment, row.data(), sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    const std::string id = build_id_in_notes(read_at(file, segment.p_offset, segment.p_filesz));
    if (!id.empty()) return id;
  }
  return "";
}

}  // namespace

std::string library_build_id(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  if (const std::string id = build_id_of(file); !id.empty()) return id;
  file.clear();
  file.seekg(0);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return fmt::format("{:016x}", hash_text(content));
}

std::string own_library_path() {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(&own_library_path), &info) != 0 && info.dli_fname != nullptr ? info.dli_fname
                                                                                                     : "";
}

const std::string& build_id() {
  static const std::string id = [] {
    const std::string own = own_library_path();
    const std::string folder = own.substr(0, own.rfind('/') + 1);
    return library_build_id(own) + "+" + library_build_id(folder + "libneuron_codegen.so");
  }();
  return id;
}

}  // namespace neuron::cache
