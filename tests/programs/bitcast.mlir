module @bitcast {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<8xi16>) -> (tensor<8xui32>, tensor<8xbf16>) {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<8xf32>) -> tensor<8xui32>
    %1 = stablehlo.bitcast_convert %arg1 : (tensor<8xi16>) -> tensor<8xbf16>
    return %0, %1 : tensor<8xui32>, tensor<8xbf16>
  }
}
