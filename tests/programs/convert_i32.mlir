module @convert_i32 {
  func.func public @main(%arg0: tensor<8xi32>) -> (tensor<8xi1>, tensor<8xui8>, tensor<8xui16>, tensor<8xui32>, tensor<8xui64>, tensor<8xi8>, tensor<8xi16>, tensor<8xi64>, tensor<8xf8E4M3FN>, tensor<8xf8E5M2>, tensor<8xbf16>, tensor<8xf16>, tensor<8xf32>, tensor<8xf64>, tensor<8xcomplex<f32>>) {
    %0 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xi1>
    %1 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xui8>
    %2 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xui16>
    %3 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xui32>
    %4 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xui64>
    %5 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xi8>
    %6 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xi16>
    %7 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xi64>
    %8 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xf8E4M3FN>
    %9 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xf8E5M2>
    %10 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xbf16>
    %11 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xf16>
    %12 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xf32>
    %13 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xf64>
    %14 = stablehlo.convert %arg0 : (tensor<8xi32>) -> tensor<8xcomplex<f32>>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14 : tensor<8xi1>, tensor<8xui8>, tensor<8xui16>, tensor<8xui32>, tensor<8xui64>, tensor<8xi8>, tensor<8xi16>, tensor<8xi64>, tensor<8xf8E4M3FN>, tensor<8xf8E5M2>, tensor<8xbf16>, tensor<8xf16>, tensor<8xf32>, tensor<8xf64>, tensor<8xcomplex<f32>>
  }
}
