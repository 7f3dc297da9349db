module @binary_c64 {
  func.func public @main(%arg0: tensor<32xcomplex<f32>>, %arg1: tensor<32xcomplex<f32>>) -> (tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>, tensor<32xi1>, tensor<32xi1>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<32xcomplex<f32>>
    %1 = stablehlo.divide %arg0, %arg1 : tensor<32xcomplex<f32>>
    %2 = stablehlo.multiply %arg0, %arg1 : tensor<32xcomplex<f32>>
    %3 = stablehlo.subtract %arg0, %arg1 : tensor<32xcomplex<f32>>
    %4 = stablehlo.compare EQ, %arg0, %arg1 : (tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>) -> tensor<32xi1>
    %5 = stablehlo.compare NE, %arg0, %arg1 : (tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>) -> tensor<32xi1>
    return %0, %1, %2, %3, %4, %5 : tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>, tensor<32xcomplex<f32>>, tensor<32xi1>, tensor<32xi1>
  }
}
