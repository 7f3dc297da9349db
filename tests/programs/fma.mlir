module @fma {
  func.func private @fma(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>) -> (tensor<8xf32>) {
    %0 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xf64>
    %1 = stablehlo.convert %arg1 : (tensor<8xf32>) -> tensor<8xf64>
    %2 = stablehlo.convert %arg2 : (tensor<8xf32>) -> tensor<8xf64>
    %3 = stablehlo.multiply %0, %1 : tensor<8xf64>
    %4 = stablehlo.add %3, %2 : tensor<8xf64>
    %5 = stablehlo.convert %4 : (tensor<8xf64>) -> tensor<8xf32>
    return %5 : tensor<8xf32>
  }
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>) -> (tensor<8xf32>) {
    %0 = stablehlo.composite "neuron.fma" %arg0, %arg1, %arg2 {decomposition = @fma} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
