module @composite {
  func.func private @softmax(%arg0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %0 = stablehlo.constant dense<-1.0e+30> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<3x4xf32>
    %4 = stablehlo.exponential %3 : tensor<3x4xf32>
    %5 = stablehlo.constant dense<0.0> : tensor<f32>
    %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
    %8 = stablehlo.divide %4, %7 : tensor<3x4xf32>
    return %8 : tensor<3x4xf32>
  }
  func.func public @main(%arg0: tensor<3x4xf32> {tf.aliasing_output = 1 : i32}, %arg1: tensor<3x4xf32> {jax.buffer_donor = true}) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
    %0 = stablehlo.composite "neuron.softmax" %arg0 {composite_attributes = {axis = -1 : i64, half = false, scale = 0.125 : f64, note = "a \22quoted\22\0Aline", sizes = array<i64: 1, 2>, empty = array<i64>, type = bf16, order = #stablehlo<comparison_direction GE>, table = dense<[5, 6]> : tensor<2xi32>}, decomposition = @softmax} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %1 = stablehlo.composite "neuron.softmax" %0 {decomposition = @softmax} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %2 = stablehlo.add %0, %arg1 : tensor<3x4xf32>
    return %1, %2 : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
