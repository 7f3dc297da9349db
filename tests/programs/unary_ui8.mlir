module @unary_ui8 {
  func.func public @main(%arg0: tensor<4x8xui8>) -> (tensor<4x8xui8>, tensor<4x8xui8>, tensor<4x8xui8>, tensor<4x8xui8>) {
    %0 = stablehlo.count_leading_zeros %arg0 : tensor<4x8xui8>
    %1 = stablehlo.not %arg0 : tensor<4x8xui8>
    %2 = stablehlo.popcnt %arg0 : tensor<4x8xui8>
    %3 = stablehlo.negate %arg0 : tensor<4x8xui8>
    return %0, %1, %2, %3 : tensor<4x8xui8>, tensor<4x8xui8>, tensor<4x8xui8>, tensor<4x8xui8>
  }
}
