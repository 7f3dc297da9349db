// What a cached kernel depends on besides its region: LLVM's version and the very bytes of this library, which the
// linker has summed up in the library's build-id note. Any change of the generator so makes its old kernels foreign.
#include <elf.h>
#include <link.h>
#include <llvm/Config/llvm-config.h>

#include <cstring>
#include <string_view>

#include "neuron/base/error.h"
#include "neuron/codegen/llvm/executable.h"

namespace neuron::codegen {

namespace {

constexpr size_t padded(size_t size) { return (size + 3) & ~size_t{3}; }

// The build-id among the notes of one segment in hexadecimal; empty when there is none.
std::string build_id_of(const char* notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name = sizeof note, content = name + padded(note.n_namesz), next = content + padded(note.n_descsz);
    if (next > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(notes + name, 3) == "GNU") {
      std::string text;
      for (size_t i = 0; i < note.n_descsz; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + i]));
      return text;
    }
    notes += next;
    size -= next;
  }
  return {};
}

int visit_library(dl_phdr_info* library, size_t, void* result) {
  const auto own = reinterpret_cast<uintptr_t>(&visit_library);
  bool ours = false;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    const uintptr_t start = library->dlpi_addr + segment.p_vaddr;
    ours = ours || (segment.p_type == PT_LOAD && own >= start && own < start + segment.p_memsz);
  }
  if (!ours) return 0;
  auto& text = *static_cast<std::string*>(result);
  for (int i = 0; i < library->dlpi_phnum && text.empty(); ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    text = build_id_of(reinterpret_cast<const char*>(library->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string generator_build_id() {
  static const std::string id = [] {
    std::string library;
    dl_iterate_phdr(visit_library, &library);
    check_internal(!library.empty(), "libneuron_codegen.so was linked without a build-id");
    return fmt::format("llvm-{}+{}", LLVM_VERSION_STRING, library);
  }();
  return id;
}

}  // namespace neuron::codegen
