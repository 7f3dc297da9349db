module @shape {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<f32>, %arg2: tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3x5xf32>, tensor<2x2xf32>, tensor<6x4xf32>, tensor<4x2x3xf32>, tensor<2x2x2xf32>, tensor<2x9x4xf32>, tensor<4x6x9xf32>, tensor<2x3x4xf32>, tensor<2x3xi32>, tensor<4xbf16>) {
    %0 = stablehlo.reverse %arg0, dims = [0, 2] : tensor<2x3x4xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<3xf32>) -> tensor<3x1xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x5xf32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %5 = stablehlo.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    %6 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %7 = stablehlo.slice %arg0 [0:2, 1:3, 0:4:3] : (tensor<2x3x4xf32>) -> tensor<2x2x2xf32>
    %8 = stablehlo.concatenate %arg0, %0, %arg0, dim = 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x9x4xf32>
    %9 = stablehlo.pad %arg0, %arg1, low = [0, 1, -1], high = [2, 0, 0], interior = [0, 1, 2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<4x6x9xf32>
    %10 = stablehlo.reverse %arg0, dims = [1] : tensor<2x3x4xf32>
    %11 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %12 = stablehlo.iota dim = 0 : tensor<4xbf16>
    return %1, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12 : tensor<2x3x4xf32>, tensor<3x5xf32>, tensor<2x2xf32>, tensor<6x4xf32>, tensor<4x2x3xf32>, tensor<2x2x2xf32>, tensor<2x9x4xf32>, tensor<4x6x9xf32>, tensor<2x3x4xf32>, tensor<2x3xi32>, tensor<4xbf16>
  }
}
