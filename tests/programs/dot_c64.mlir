module @dot_c64 {
  func.func public @main(%arg0: tensor<2x3x4xcomplex<f32>>, %arg1: tensor<2x4x5xcomplex<f32>>, %arg2: tensor<4x3xcomplex<f32>>) -> (tensor<2x3x5xcomplex<f32>>, tensor<2xcomplex<f32>>) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xcomplex<f32>>, tensor<2x4x5xcomplex<f32>>) -> tensor<2x3x5xcomplex<f32>>
    %1 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2, 1] x [0, 1] : (tensor<2x3x4xcomplex<f32>>, tensor<4x3xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    return %0, %1 : tensor<2x3x5xcomplex<f32>>, tensor<2xcomplex<f32>>
  }
}
