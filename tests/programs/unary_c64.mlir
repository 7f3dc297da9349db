module @unary_c64 {
  func.func public @main(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.abs %arg0 : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
    %1 = stablehlo.cosine %arg0 : tensor<4x8xcomplex<f32>>
    %2 = stablehlo.exponential %arg0 : tensor<4x8xcomplex<f32>>
    %3 = stablehlo.exponential_minus_one %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.imag %arg0 : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
    %5 = stablehlo.log %arg0 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.log_plus_one %arg0 : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.logistic %arg0 : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.negate %arg0 : tensor<4x8xcomplex<f32>>
    %9 = stablehlo.real %arg0 : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
    %10 = stablehlo.rsqrt %arg0 : tensor<4x8xcomplex<f32>>
    %11 = stablehlo.sign %arg0 : tensor<4x8xcomplex<f32>>
    %12 = stablehlo.sine %arg0 : tensor<4x8xcomplex<f32>>
    %13 = stablehlo.sqrt %arg0 : tensor<4x8xcomplex<f32>>
    %14 = stablehlo.tanh %arg0 : tensor<4x8xcomplex<f32>>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14 : tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>
  }
}
