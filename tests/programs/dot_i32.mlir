module @dot_i32 {
  func.func public @main(%arg0: tensor<2x3x4xi32>, %arg1: tensor<2x4x5xi32>, %arg2: tensor<4x3xi32>) -> (tensor<2x3x5xi32>, tensor<2xi32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xi32>, tensor<2x4x5xi32>) -> tensor<2x3x5xi32>
    %1 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2, 1] x [0, 1] : (tensor<2x3x4xi32>, tensor<4x3xi32>) -> tensor<2xi32>
    return %0, %1 : tensor<2x3x5xi32>, tensor<2xi32>
  }
}
