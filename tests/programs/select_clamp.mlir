module @select_clamp {
  func.func public @main(%arg0: tensor<8xi1>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %0 = stablehlo.select %arg3, %arg1, %arg2 : (tensor<i1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.constant dense<-1.0> : tensor<f32>
    %2 = stablehlo.constant dense<2.0> : tensor<f32>
    %3 = stablehlo.clamp %1, %arg1, %2 : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %4 = stablehlo.select %arg0, %arg1, %arg2 : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %5 = stablehlo.clamp %arg2, %arg1, %arg2 : tensor<8xf32>
    return %4, %0, %3, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}
