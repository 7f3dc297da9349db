module @unary_bf16 {
  func.func public @main(%arg0: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xi1>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>) {
    %0 = stablehlo.abs %arg0 : tensor<4x8xbf16>
    %1 = stablehlo.cbrt %arg0 : tensor<4x8xbf16>
    %2 = stablehlo.ceil %arg0 : tensor<4x8xbf16>
    %3 = stablehlo.cosine %arg0 : tensor<4x8xbf16>
    %4 = stablehlo.exponential %arg0 : tensor<4x8xbf16>
    %5 = stablehlo.exponential_minus_one %arg0 : tensor<4x8xbf16>
    %6 = stablehlo.floor %arg0 : tensor<4x8xbf16>
    %7 = stablehlo.is_finite %arg0 : (tensor<4x8xbf16>) -> tensor<4x8xi1>
    %8 = stablehlo.log %arg0 : tensor<4x8xbf16>
    %9 = stablehlo.log_plus_one %arg0 : tensor<4x8xbf16>
    %10 = stablehlo.logistic %arg0 : tensor<4x8xbf16>
    %11 = stablehlo.negate %arg0 : tensor<4x8xbf16>
    %12 = stablehlo.round_nearest_afz %arg0 : tensor<4x8xbf16>
    %13 = stablehlo.round_nearest_even %arg0 : tensor<4x8xbf16>
    %14 = stablehlo.rsqrt %arg0 : tensor<4x8xbf16>
    %15 = stablehlo.sign %arg0 : tensor<4x8xbf16>
    %16 = stablehlo.sine %arg0 : tensor<4x8xbf16>
    %17 = stablehlo.sqrt %arg0 : tensor<4x8xbf16>
    %18 = stablehlo.tan %arg0 : tensor<4x8xbf16>
    %19 = stablehlo.tanh %arg0 : tensor<4x8xbf16>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19 : tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xi1>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>
  }
}
