// Functions in float32 by polynomials in eight pieces. Measured: tanh 1.09 ulp, erf 0.81.
#include <iterator>

#include "neuron/codegen/llvm/math_functions.h"
#include "neuron/codegen/llvm/math_tables.h"

namespace neuron::codegen {

namespace {

using llvm::Value;

// Of each piece, with t = x - centre: value + t (term 1 + t (term 2 + … + t term 8)). Two terms share a word where half
// the bits of a float are enough: term 7 is the lower half of `pairs`, whose whole is term 6, and term 8 that of
// `centre`. Centres are such that the function's value there is a float but for 2^-30 of it. Fitted by weighted least
// squares on Chebyshev nodes, a term rounded at a time, for the terms as they are read.
struct Pieces {
  Table centre, value;
  Table terms[5];
  Table pairs;
};

struct Piece {
  Value *t, *value, *slope;  // slope: what t is multiplied by
};

Piece emit_piece(const Lanes& lanes, const Pieces& pieces, Value* x, Value* which) {
  auto& b = lanes.builder();
  auto lower_half = [&](Value* word) { return lanes.from_bits(b.CreateShl(lanes.bits(word), 16)); };
  Value* centre = emit_one_of_8(lanes, pieces.centre, which);
  Value* pair = emit_one_of_8(lanes, pieces.pairs, which);
  Value* t = b.CreateFSub(x, centre);
  Value* p = lanes.fma(lower_half(centre), t, lower_half(pair));
  p = lanes.fma(p, t, pair);
  for (size_t i = std::size(pieces.terms); i-- > 0;) p = lanes.fma(p, t, emit_one_of_8(lanes, pieces.terms[i], which));
  return {t, emit_one_of_8(lanes, pieces.value, which), p};
}

}  // namespace

Value* emit_tanh_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  // Half an octave of |x| + 3/4 is a piece, from |x| in [0, 1/4) (place 5 of the tables) to [7.25, 9.5] (place 4), from
  // where on the result is 1.
  static constexpr Pieces pieces = {
      .centre = {0x1.ba74cap+0, 0x1.5e693ap+1, 0x1.0f6c58p+2, 0x1.9766c4p+2, 0x1.0960aap+3, 0, 0x1.047824p-1,
                 0x1.fb77d4p-1},
      .value = {0x1.e0b242p-1, 0x1.fbba54p-1, 0x1.ffc9b4p-1, 0x1.ffff3ap-1, 0x1.fffffcp-1, 0, 0x1.e03594p-2,
                0x1.840522p-1},
      .terms = {{{0x1.e58c3p-4, 0x1.1046fep-6, 0x1.b2478cp-11, 0x1.8d18dcp-17, 0x1.0a711ap-22, 0x1p+0, 0x1.8f66e2p-1,
                  0x1.b3e07p-2}},
                {{-0x1.c7dca2p-4, -0x1.0e0148p-6, -0x1.b222b4p-11, -0x1.9132d6p-17, -0x1.39fc1p-22, -0x1.092b38p-25,
                  -0x1.769a3p-2, -0x1.4a546cp-2}},
                {{0x1.0a23cep-4, 0x1.61fb4ap-7, 0x1.21430ap-11, 0x1.06323p-17, 0x1.915664p-23, -0x1.5554aep-2,
                  -0x1.6a6508p-4, 0x1.a432cp-4}},
                {{-0x1.87a1bcp-6, -0x1.56131cp-8, -0x1.207352p-12, -0x1.e7ff6cp-19, -0x1.5a4b4ep-27, -0x1.0e9cbcp-14,
                  0x1.4eb064p-3, 0x1.e7e0dp-6}},
                {{0x1.c15572p-9, 0x1.fe209cp-10, 0x1.c9122p-14, 0x1.dcdd98p-20, -0x1.dab42p-28, 0x1.1296acp-3,
                  -0x1.e73794p-6, -0x1.83ccbcp-5}}},
      .pairs = {0x1.2b761cp-9, -0x1.2271ap-11, -0x1.326e7ep-15, -0x1.866192p-21, -0x1.9e65cp-25, -0x1.0b7a6ep-8,
                -0x1.8e79c4p-5, 0x1.3476c4p-6},
  };
  Value* a = emit_at_most(lanes, lanes.absolute(x), 9.5);
  Value* which = b.CreateLShr(lanes.bits(b.CreateFAdd(a, lanes.f32(0.75))), 22);  // in the low bits
  Piece piece = emit_piece(lanes, pieces, a, which);
  return lanes.copy_sign(lanes.fma(piece.t, piece.slope, piece.value), x);
}

Value* emit_erf_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  // A piece for each multiple of 17/32 that |x| may be nearest to. Term 1 is less by 1, so that the slope at zero, 1 +
  // 0.128, is more exact than a float.
  static constexpr Pieces pieces = {
      .centre = {0, 0x1.0a782cp-1, 0x1.0f775ep+0, 0x1.9774ep+0, 0x1.12755ep+1, 0x1.566dfp+1, 0x1.997194p+1,
                 0x1.df6ec8p+1},
      .value = {0, 0x1.139a02p-1, 0x1.bb8b2p-1, 0x1.f382eap-1, 0x1.fec1f6p-1, 0x1.ffebb8p-1, 0x1.ffff34p-1,
                0x1.fffffcp-1},
      .terms = {{{0x1.06eba8p-3, -0x1.1d6b08p-3, -0x1.44574ap-1, -0x1.d2211p-1, -0x1.fa2dcep-1, -0x1.ff8cb6p-1,
                  -0x1.fffaaep-1, -0x1.ffffe2p-1}},
                {{-0x1.25e318p-28, -0x1.caaa8ep-2, -0x1.8dfe2cp-2, -0x1.240982p-3, -0x1.8f691ep-6, -0x1.346a5p-9,
                  -0x1.0f581p-13, -0x1.ae48ep-19}},
                {{-0x1.81272p-2, -0x1.0d3eb6p-3, 0x1.38809ap-3, 0x1.f16eeep-4, 0x1.fcd91ap-6, 0x1.ff9c9cp-9,
                  0x1.15273ap-12, 0x1.240d8ep-17}},
                {{-0x1.1b987ep-16, 0x1.77d79cp-3, 0x1.8e8666p-5, -0x1.925938p-5, -0x1.9c6944p-6, -0x1.22e8b4p-8,
                  -0x1.9cd7e8p-12, -0x1.67bcaap-16}},
                {{0x1.cf02ap-4, 0x1.4789p-10, -0x1.0fdd4ap-4, -0x1.544258p-8, 0x1.92774ap-7, 0x1.d52b06p-9,
                  0x1.8b67p-12, -0x1.499e4cp-25}}},
      .pairs = {-0x1.21799p-10, -0x1.9277b6p-5, 0x1.58789p-7, 0x1.03777p-6, -0x1.0d75cep-9, -0x1.047462p-9,
                -0x1.a073fp-13, 0x1.b672d6p-15},
  };
  Value* a = emit_at_most(lanes, lanes.absolute(x), 3.98);
  Value* which = lanes.bits(lanes.fma(a, lanes.f32(32.0 / 17), lanes.f32(kRoundingShift)));  // in the low bits
  Piece piece = emit_piece(lanes, pieces, a, which);
  return lanes.copy_sign(b.CreateFAdd(piece.value, lanes.fma(piece.t, piece.slope, piece.t)), x);
}

Value* emit_gelu_derivative_f32(const Lanes& lanes, Value* x) {
  auto& b = lanes.builder();
  // 1/2 + h(x), where h is odd; a piece for each multiple of 53/64 that |x| may be nearest to.
  static constexpr Pieces pieces = {
      .centre = {0, 0x1.ae75acp-1, 0x1.ad75a8p+0, 0x1.3e745p+1, 0x1.a76fc4p+1, 0x1.097006p+2, 0x1.406d5ep+2,
                 0x1.726ac8p+2},
      .value = {0, 0x1.12134cp-1, 0x1.3bfafp-1, 0x1.13b89cp-1, 0x1.0299ap-1, 0x1.0025b2p-1, 0x1.0000e8p-1,
                0x1.000004p-1},
      .terms = {{{0x1.988454p-1, 0x1.72ff3ep-2, -0x1.45c7dep-4, -0x1.36014ep-4, -0x1.eb7d5p-7, -0x1.24799cp-10,
                  -0x1.164ccep-15, -0x1.66ee72p-21}},
                {{-0x1.fbb5bap-21, -0x1.8d28bcp-2, -0x1.8decfp-4, 0x1.9319e4p-5, 0x1.3b9398p-6, 0x1.075b4ap-9,
                  0x1.3fddfap-14, 0x1.e758d8p-20}},
                {{-0x1.1053a6p-2, 0x1.56f48p-6, 0x1.03632ep-3, 0x1.90912p-9, -0x1.afe8dcp-7, -0x1.1fc2bcp-9,
                  -0x1.c8d656p-14, -0x1.a7704ap-19}},
                {{-0x1.402ba2p-13, 0x1.af1bfap-4, -0x1.19b492p-5, -0x1.693bp-6, 0x1.074938p-8, 0x1.9e9e94p-10,
                  0x1.b9b514p-14, 0x1.061954p-18}},
                {{0x1.f00976p-5, -0x1.8dbf06p-6, -0x1.199566p-6, 0x1.81b92cp-7, 0x1.e0a272p-11, -0x1.85eba2p-11,
                  -0x1.836d6ap-14, -0x1.f823a6p-19}}},
      .pairs = {-0x1.c977f2p-10, -0x1.087772p-6, 0x1.81714p-7, -0x1.c975aap-11, -0x1.76741cp-10, 0x1.7e6fbp-13,
                0x1.246f4cp-14, 0x1.916beep-19},
  };
  Value* a = emit_at_most(lanes, lanes.absolute(x), 6.2);
  Value* which = lanes.bits(lanes.fma(a, lanes.f32(64.0 / 53), lanes.f32(kRoundingShift)));  // in the low bits
  Piece piece = emit_piece(lanes, pieces, a, which);
  Value* odd = lanes.copy_sign(lanes.fma(piece.t, piece.slope, piece.value), x);
  // An infinite x gives NaN, as the formula does.
  return b.CreateFAdd(odd, lanes.fma(x, lanes.f32(0.0), lanes.f32(0.5)));
}

}  // namespace neuron::codegen
