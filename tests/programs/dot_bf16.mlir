module @dot_bf16 {
  func.func public @main(%arg0: tensor<2x3x4xbf16>, %arg1: tensor<2x4x5xbf16>, %arg2: tensor<4x3xbf16>) -> (tensor<2x3x5xf32>, tensor<2xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xbf16>, tensor<2x4x5xbf16>) -> tensor<2x3x5xf32>
    %1 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2, 1] x [0, 1] : (tensor<2x3x4xbf16>, tensor<4x3xbf16>) -> tensor<2xf32>
    return %0, %1 : tensor<2x3x5xf32>, tensor<2xf32>
  }
}
