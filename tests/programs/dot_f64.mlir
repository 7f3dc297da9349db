module @dot_f64 {
  func.func public @main(%arg0: tensor<2x3x4xf64>, %arg1: tensor<2x4x5xf64>, %arg2: tensor<4x3xf64>) -> (tensor<2x3x5xf64>, tensor<2xf64>) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xf64>, tensor<2x4x5xf64>) -> tensor<2x3x5xf64>
    %1 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2, 1] x [0, 1] : (tensor<2x3x4xf64>, tensor<4x3xf64>) -> tensor<2xf64>
    return %0, %1 : tensor<2x3x5xf64>, tensor<2xf64>
  }
}
