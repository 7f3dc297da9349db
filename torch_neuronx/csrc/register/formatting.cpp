// What is no template in the fmt whose headers come with torch, compiled here once: it is another version than the
// core's (which links the system's, see CMakeLists.txt), and compiled into every file it takes much of a build. A wheel
// is built with FMT_HEADER_ONLY, where the same functions are inline.
#include <fmt/format.h>

#ifndef FMT_HEADER_ONLY
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// format.h declares these as instantiated elsewhere.
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;

}  // namespace detail
FMT_END_NAMESPACE
#endif
