module @complex_parts {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xcomplex<f32>>) {
    %0 = stablehlo.complex %arg0, %arg1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xcomplex<f32>>
    return %0 : tensor<8xcomplex<f32>>
  }
}
