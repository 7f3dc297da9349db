// Included inside the unnamed namespace of the files of an instruction set, after they have defined NEURON_INLINE,
// Integers and load_integers.

// The last keys of 16 queries, counted from `first`: -1 before it, `count` behind all of them.
NEURON_INLINE Integers relative_limits(const int64_t* limits, int64_t first, int64_t count) {
  alignas(64) int32_t relative[16];
  for (int i = 0; i < 16; ++i) {
    int64_t last = limits[i] - first;
    relative[i] = static_cast<int32_t>(last < -1 ? -1 : last > count ? count : last);
  }
  return load_integers(relative);
}
