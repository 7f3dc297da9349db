module @unary_i32 {
  func.func public @main(%arg0: tensor<4x8xi32>) -> (tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>) {
    %0 = stablehlo.count_leading_zeros %arg0 : tensor<4x8xi32>
    %1 = stablehlo.not %arg0 : tensor<4x8xi32>
    %2 = stablehlo.popcnt %arg0 : tensor<4x8xi32>
    %3 = stablehlo.negate %arg0 : tensor<4x8xi32>
    return %0, %1, %2, %3 : tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>
  }
}
