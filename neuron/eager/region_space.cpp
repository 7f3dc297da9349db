#include "neuron/eager/region_space.h"

#include <algorithm>

namespace neuron::eager {

namespace {

constexpr int64_t kShortestColumns = 32;

using Boundaries = SmallVector<int64_t, kMaxRank>;

Boundaries boundaries_of(const CanonicalCommand& command) {
  Boundaries result;
  int64_t product = 1;
  for (int d = command.space.rank - 1; d > 0; --d) {
    product *= command.space.sizes[d];
    if (product != 1 && product != command.numel) result.push_back(product);
  }
  return result;
}

// The sorted union; false when neighbours do not divide each other or there are too many.
bool merge_boundaries(const Boundaries& a, const Boundaries& b, int64_t numel, Boundaries& result) {
  size_t i = 0, j = 0;
  int64_t last = 1;
  result.clear();
  while (i < a.size() || j < b.size()) {
    int64_t next = j == b.size() || (i < a.size() && a[i] <= b[j]) ? a[i] : b[j];
    while (i < a.size() && a[i] == next) ++i;
    while (j < b.size() && b[j] == next) ++j;
    if (next % last != 0) return false;
    result.push_back(next);
    last = next;
  }
  return numel % last == 0 && static_cast<int>(result.size()) + 2 <= kMaxRank;
}

bool has_boundary_between(const Boundaries& boundaries, int64_t low, int64_t high) {
  return std::any_of(boundaries.begin(), boundaries.end(), [&](int64_t b) { return b > low && b < high; });
}

struct Extents {
  codegen::Reduction reduction;
  int64_t reduced, inner;
};

Extents extents_of(const CanonicalCommand& command) {
  const Space& space = command.space;
  switch (command.reduction) {
    case codegen::Reduction::None:
      return {command.reduction, 0, 0};
    case codegen::Reduction::Inner:
      return {command.reduction, space.sizes[space.rank - 1], 0};
    case codegen::Reduction::Outer:
      return {command.reduction, space.sizes[space.rank - 2], space.sizes[space.rank - 1]};
  }
  return {};
}

bool reduced_dimension_whole(const Extents& extents, const Boundaries& boundaries) {
  if (extents.reduction == codegen::Reduction::Inner) return !has_boundary_between(boundaries, 1, extents.reduced);
  if (extents.reduction == codegen::Reduction::Outer) {
    return !has_boundary_between(boundaries, 1, extents.inner) &&
           !has_boundary_between(boundaries, extents.inner, extents.inner * extents.reduced);
  }
  return true;
}

}  // namespace

void start_space(Region& region, const CanonicalCommand& command) {
  region.numel = command.numel;
  region.boundaries = boundaries_of(command);
  Extents extents = extents_of(command);
  region.reduction = extents.reduction;
  region.reduced_size = extents.reduced;
  region.inner_size = extents.inner;
}

bool space_fits(const Region& region, const CanonicalCommand& command) {
  if (region.numel != command.numel || command.numel == 0) return false;
  Extents theirs = extents_of(command);
  Extents ours{region.reduction, region.reduced_size, region.inner_size};
  bool both = theirs.reduction != codegen::Reduction::None && ours.reduction != codegen::Reduction::None;
  if (both && (theirs.reduction != ours.reduction || theirs.reduced != ours.reduced || theirs.inner != ours.inner))
    return false;
  // A dimension of size 1 gives no boundary to hold it apart.
  const Extents& extents = theirs.reduction != codegen::Reduction::None ? theirs : ours;
  if (extents.reduction != codegen::Reduction::None && extents.reduced <= 1) return false;
  // Short columns: everything else in the region would run in vectors that are mostly empty.
  if (extents.reduction == codegen::Reduction::Outer && extents.inner < kShortestColumns) return false;
  Boundaries merged;
  if (!merge_boundaries(region.boundaries, boundaries_of(command), region.numel, merged)) return false;
  return reduced_dimension_whole(extents, merged);
}

void join_space(Region& region, const CanonicalCommand& command) {
  Boundaries merged;
  merge_boundaries(region.boundaries, boundaries_of(command), region.numel, merged);
  region.boundaries = merged;
  if (command.reduction != codegen::Reduction::None) {
    Extents extents = extents_of(command);
    region.reduction = extents.reduction;
    region.reduced_size = extents.reduced;
    region.inner_size = extents.inner;
  }
}

Space refined_space(const Region& region) {
  Space space;
  int64_t total = region.numel;
  for (size_t i = region.boundaries.size(); i-- > 0;) {
    space.sizes[space.rank++] = total / region.boundaries[i];
    total = region.boundaries[i];
  }
  space.sizes[space.rank++] = total;
  return space;
}

void refine_strides(const Space& refined, const Space& canonical, const int64_t* strides, int64_t* result) {
  int d = canonical.rank - 1;
  int64_t within = 1;  // elements of canonical dimension d covered by the refined dimensions inside the current one
  for (int r = refined.rank - 1; r >= 0; --r) {
    while (d > 0 && within == canonical.sizes[d]) {
      --d;
      within = 1;
    }
    result[r] = strides[d] * within;
    within *= refined.sizes[r];
  }
}

}  // namespace neuron::eager
