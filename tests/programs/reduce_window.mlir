module @reduce_window {
  func.func public @main(%arg0: tensor<1x2x7x6xf32>) -> (tensor<1x2x4x5xf32>, tensor<1x2x4x3xf32>) {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 1>, window_dilations = array<i64: 1, 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], [0, 1]]> : tensor<4x2xi64>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<1x2x7x6xf32>, tensor<f32>) -> tensor<1x2x4x5xf32>
    %3 = stablehlo.constant dense<-1.0e+30> : tensor<f32>
    %4 = "stablehlo.reduce_window"(%arg0, %3) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 0], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %5 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<1x2x7x6xf32>, tensor<f32>) -> tensor<1x2x4x3xf32>
    return %1, %4 : tensor<1x2x4x5xf32>, tensor<1x2x4x3xf32>
  }
}
