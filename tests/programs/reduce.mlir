module @reduce {
  func.func public @main(%arg0: tensor<3x4x5xf32>, %arg1: tensor<3x4xi1>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4x5xf32>, tensor<f32>, tensor<3xi1>, tensor<4xi1>, tensor<3x5xf32>, tensor<3x5xi32>) {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.constant dense<1.0> : tensor<f32>
    %2 = stablehlo.iota dim = 1 : tensor<3x4x5xi32>
    %3 = stablehlo.constant dense<-1.0e+30> : tensor<f32>
    %4 = stablehlo.constant dense<-1> : tensor<i32>
    %5:2 = "stablehlo.reduce"(%arg0, %2, %3, %4) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<f32>, %arg5: tensor<i32>):
      %6 = stablehlo.compare GT, %arg4, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = stablehlo.select %6, %arg4, %arg2 : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %8 = stablehlo.select %6, %arg5, %arg3 : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
    }) : (tensor<3x4x5xf32>, tensor<3x4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x5xf32>, tensor<3x5xi32>)
    %9 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [2] : (tensor<3x4x5xf32>, tensor<f32>) -> tensor<3x4xf32>
    %10 = stablehlo.reduce(%arg0 init: %1) applies stablehlo.multiply across dimensions = [0, 2] : (tensor<3x4x5xf32>, tensor<f32>) -> tensor<4xf32>
    %11 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<3x4x5xf32>, tensor<f32>) -> tensor<4x5xf32>
    %12 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.minimum across dimensions = [0, 1, 2] : (tensor<3x4x5xf32>, tensor<f32>) -> tensor<f32>
    %13 = stablehlo.constant dense<false> : tensor<i1>
    %14 = stablehlo.reduce(%arg1 init: %13) applies stablehlo.or across dimensions = [1] : (tensor<3x4xi1>, tensor<i1>) -> tensor<3xi1>
    %15 = stablehlo.constant dense<true> : tensor<i1>
    %16 = stablehlo.reduce(%arg1 init: %15) applies stablehlo.and across dimensions = [0] : (tensor<3x4xi1>, tensor<i1>) -> tensor<4xi1>
    return %9, %10, %11, %12, %14, %16, %5#0, %5#1 : tensor<3x4xf32>, tensor<4xf32>, tensor<4x5xf32>, tensor<f32>, tensor<3xi1>, tensor<4xi1>, tensor<3x5xf32>, tensor<3x5xi32>
  }
}
