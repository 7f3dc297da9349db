module @power_i32 {
  func.func public @main(%arg0: tensor<32xi32>) -> (tensor<32xi32>) {
    %0 = stablehlo.constant dense<5> : tensor<32xi32>
    %1 = stablehlo.power %arg0, %0 : tensor<32xi32>
    return %1 : tensor<32xi32>
  }
}
