module @binary_i32 {
  func.func public @main(%arg0: tensor<32xi32>, %arg1: tensor<32xi32>) -> (tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<32xi32>
    %1 = stablehlo.and %arg0, %arg1 : tensor<32xi32>
    %2 = stablehlo.divide %arg0, %arg1 : tensor<32xi32>
    %3 = stablehlo.maximum %arg0, %arg1 : tensor<32xi32>
    %4 = stablehlo.minimum %arg0, %arg1 : tensor<32xi32>
    %5 = stablehlo.multiply %arg0, %arg1 : tensor<32xi32>
    %6 = stablehlo.or %arg0, %arg1 : tensor<32xi32>
    %7 = stablehlo.remainder %arg0, %arg1 : tensor<32xi32>
    %8 = stablehlo.shift_left %arg0, %arg1 : tensor<32xi32>
    %9 = stablehlo.shift_right_arithmetic %arg0, %arg1 : tensor<32xi32>
    %10 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<32xi32>
    %11 = stablehlo.subtract %arg0, %arg1 : tensor<32xi32>
    %12 = stablehlo.xor %arg0, %arg1 : tensor<32xi32>
    %13 = stablehlo.compare EQ, %arg0, %arg1 : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %14 = stablehlo.compare NE, %arg0, %arg1 : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %15 = stablehlo.compare LT, %arg0, %arg1 : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %16 = stablehlo.compare LE, %arg0, %arg1 : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %17 = stablehlo.compare GT, %arg0, %arg1 : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %18 = stablehlo.compare GE, %arg0, %arg1 : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18 : tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>
  }
}
