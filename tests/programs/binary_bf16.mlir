module @binary_bf16 {
  func.func public @main(%arg0: tensor<32xbf16>, %arg1: tensor<32xbf16>) -> (tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<32xbf16>
    %1 = stablehlo.atan2 %arg0, %arg1 : tensor<32xbf16>
    %2 = stablehlo.divide %arg0, %arg1 : tensor<32xbf16>
    %3 = stablehlo.maximum %arg0, %arg1 : tensor<32xbf16>
    %4 = stablehlo.minimum %arg0, %arg1 : tensor<32xbf16>
    %5 = stablehlo.multiply %arg0, %arg1 : tensor<32xbf16>
    %6 = stablehlo.power %arg0, %arg1 : tensor<32xbf16>
    %7 = stablehlo.remainder %arg0, %arg1 : tensor<32xbf16>
    %8 = stablehlo.subtract %arg0, %arg1 : tensor<32xbf16>
    %9 = stablehlo.compare EQ, %arg0, %arg1 : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xi1>
    %10 = stablehlo.compare NE, %arg0, %arg1 : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xi1>
    %11 = stablehlo.compare LT, %arg0, %arg1 : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xi1>
    %12 = stablehlo.compare LE, %arg0, %arg1 : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xi1>
    %13 = stablehlo.compare GT, %arg0, %arg1 : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xi1>
    %14 = stablehlo.compare GE, %arg0, %arg1 : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xi1>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14 : tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>, tensor<32xi1>
  }
}
