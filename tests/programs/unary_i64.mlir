module @unary_i64 {
  func.func public @main(%arg0: tensor<4x8xi64>) -> (tensor<4x8xi64>, tensor<4x8xi64>, tensor<4x8xi64>, tensor<4x8xi64>) {
    %0 = stablehlo.count_leading_zeros %arg0 : tensor<4x8xi64>
    %1 = stablehlo.not %arg0 : tensor<4x8xi64>
    %2 = stablehlo.popcnt %arg0 : tensor<4x8xi64>
    %3 = stablehlo.negate %arg0 : tensor<4x8xi64>
    return %0, %1, %2, %3 : tensor<4x8xi64>, tensor<4x8xi64>, tensor<4x8xi64>, tensor<4x8xi64>
  }
}
