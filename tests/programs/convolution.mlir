module @convolution {
  func.func public @main(%arg0: tensor<2x4x6x5xf32>, %arg1: tensor<4x2x3x2xf32>, %arg2: tensor<6x4x2xf32>, %arg3: tensor<2x4x9xf32>) -> (tensor<2x4x3x9xf32>, tensor<2x6x26xf32>, tensor<1x6x8xf32>) {
    %0 = "stablehlo.convolution"(%arg0, %arg1) <{dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 2>, rhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: false, false>, feature_group_count = 2 : i64, batch_group_count = 1 : i64}> : (tensor<2x4x6x5xf32>, tensor<4x2x3x2xf32>) -> tensor<2x4x3x9xf32>
    %1 = "stablehlo.convolution"(%arg3, %arg2) <{dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 3>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: true>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<2x4x9xf32>, tensor<6x4x2xf32>) -> tensor<2x6x26xf32>
    %2 = "stablehlo.convolution"(%arg3, %arg2) <{dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, window_strides = array<i64: 1>, padding = dense<[[0, 0]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, feature_group_count = 1 : i64, batch_group_count = 2 : i64}> : (tensor<2x4x9xf32>, tensor<6x4x2xf32>) -> tensor<1x6x8xf32>
    return %0, %1, %2 : tensor<2x4x3x9xf32>, tensor<2x6x26xf32>, tensor<1x6x8xf32>
  }
}
