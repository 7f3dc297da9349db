module @binary_ui8 {
  func.func public @main(%arg0: tensor<32xui8>, %arg1: tensor<32xui8>) -> (tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<32xui8>
    %1 = stablehlo.and %arg0, %arg1 : tensor<32xui8>
    %2 = stablehlo.divide %arg0, %arg1 : tensor<32xui8>
    %3 = stablehlo.maximum %arg0, %arg1 : tensor<32xui8>
    %4 = stablehlo.minimum %arg0, %arg1 : tensor<32xui8>
    %5 = stablehlo.multiply %arg0, %arg1 : tensor<32xui8>
    %6 = stablehlo.or %arg0, %arg1 : tensor<32xui8>
    %7 = stablehlo.remainder %arg0, %arg1 : tensor<32xui8>
    %8 = stablehlo.shift_left %arg0, %arg1 : tensor<32xui8>
    %9 = stablehlo.shift_right_arithmetic %arg0, %arg1 : tensor<32xui8>
    %10 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<32xui8>
    %11 = stablehlo.subtract %arg0, %arg1 : tensor<32xui8>
    %12 = stablehlo.xor %arg0, %arg1 : tensor<32xui8>
    %13 = stablehlo.compare EQ, %arg0, %arg1 : (tensor<32xui8>, tensor<32xui8>) -> tensor<32xi1>
    %14 = stablehlo.compare NE, %arg0, %arg1 : (tensor<32xui8>, tensor<32xui8>) -> tensor<32xi1>
    %15 = stablehlo.compare LT, %arg0, %arg1 : (tensor<32xui8>, tensor<32xui8>) -> tensor<32xi1>
    %16 = stablehlo.compare LE, %arg0, %arg1 : (tensor<32xui8>, tensor<32xui8>) -> tensor<32xi1>
    %17 = stablehlo.compare GT, %arg0, %arg1 : (tensor<32xui8>, tensor<32xui8>) -> tensor<32xi1>
    %18 = stablehlo.compare GE, %arg0, %arg1 : (tensor<32xui8>, tensor<32xui8>) -> tensor<32xi1>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18 : tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xui8>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>
  }
}
