module @unary_signed {
  func.func public @main(%arg0: tensor<16xi8>) -> (tensor<16xi8>, tensor<16xi8>) {
    %0 = stablehlo.abs %arg0 : tensor<16xi8>
    %1 = stablehlo.sign %arg0 : tensor<16xi8>
    return %0, %1 : tensor<16xi8>, tensor<16xi8>
  }
}
