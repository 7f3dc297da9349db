module @binary_i1 {
  func.func public @main(%arg0: tensor<32xi1>, %arg1: tensor<32xi1>) -> (tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<32xi1>
    %1 = stablehlo.and %arg0, %arg1 : tensor<32xi1>
    %2 = stablehlo.maximum %arg0, %arg1 : tensor<32xi1>
    %3 = stablehlo.minimum %arg0, %arg1 : tensor<32xi1>
    %4 = stablehlo.multiply %arg0, %arg1 : tensor<32xi1>
    %5 = stablehlo.or %arg0, %arg1 : tensor<32xi1>
    %6 = stablehlo.xor %arg0, %arg1 : tensor<32xi1>
    %7 = stablehlo.compare EQ, %arg0, %arg1 : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %8 = stablehlo.compare NE, %arg0, %arg1 : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %9 = stablehlo.compare LT, %arg0, %arg1 : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %10 = stablehlo.compare LE, %arg0, %arg1 : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %11 = stablehlo.compare GT, %arg0, %arg1 : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %12 = stablehlo.compare GE, %arg0, %arg1 : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12 : tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>
  }
}
