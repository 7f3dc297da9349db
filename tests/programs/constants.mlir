module @constants {
  func.func public @main() -> (tensor<2x4xf32>, tensor<2x4xf64>, tensor<2x4xbf16>, tensor<2x4xf16>, tensor<2x4xf8E5M2>, tensor<3xf8E4M3FN>, tensor<3xi1>, tensor<3xi8>, tensor<3xi16>, tensor<3xi32>, tensor<3xi64>, tensor<2x2xui8>, tensor<2x2xui16>, tensor<2x2xui32>, tensor<2x2xui64>, tensor<2xcomplex<f64>>, tensor<f32>, tensor<0x3xf32>, tensor<8x10xf32>) {
    %0 = stablehlo.constant dense<[[0.0, -0.0, 0.1, -1.5], [0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-08]]> : tensor<2x4xf32>
    %1 = stablehlo.constant dense<[[0.0, -0.0, 0.1, -1.5], [0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 1.0e-08]]> : tensor<2x4xf64>
    %2 = stablehlo.constant dense<[[0.0, -0.0, 0.100097656, -1.5], [0x7F80, 0xFF80, 0x7FC0, 1.0011718e-08]]> : tensor<2x4xbf16>
    %3 = stablehlo.constant dense<[[0.0, -0.0, 0.099975586, -1.5], [0x7C00, 0xFC00, 0x7E00, 0.0]]> : tensor<2x4xf16>
    %4 = stablehlo.constant dense<[[0.0, -0.0, 0.09375, -1.5], [0x7C, 0xFC, 0x7F, 0.0]]> : tensor<2x4xf8E5M2>
    %5 = stablehlo.constant dense<[0x7F, 448.0, -0.25]> : tensor<3xf8E4M3FN>
    %6 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %7 = stablehlo.constant dense<[-128, 0, 127]> : tensor<3xi8>
    %8 = stablehlo.constant dense<[-128, 0, 127]> : tensor<3xi16>
    %9 = stablehlo.constant dense<[-128, 0, 127]> : tensor<3xi32>
    %10 = stablehlo.constant dense<[-128, 0, 127]> : tensor<3xi64>
    %11 = stablehlo.constant dense<255> : tensor<2x2xui8>
    %12 = stablehlo.constant dense<65535> : tensor<2x2xui16>
    %13 = stablehlo.constant dense<4294967295> : tensor<2x2xui32>
    %14 = stablehlo.constant dense<18446744073709551615> : tensor<2x2xui64>
    %15 = stablehlo.constant dense<(2.5, 0.0)> : tensor<2xcomplex<f64>>
    %16 = stablehlo.constant dense<1.0e+30> : tensor<f32>
    %17 = stablehlo.constant dense<> : tensor<0x3xf32>
    %18 = stablehlo.constant dense<"0x000040C06EDB36C0DBB62DC0499224C0B76D1BC0254912C0922409C0000000C0DBB6EDBFB76DDBBF9224C9BF6EDBB6BF4992A4BF254992BF000080BFB76D5BBF6EDB36BF254912BFB76DDBBE254992BE254912BE000000002549123E2549923EB76DDB3E2549123F6EDB363FB76D5B3F0000803F2549923F4992A43F6EDBB63F9224C93FB76DDB3FDBB6ED3F000000409224094025491240B76D1B4049922440DBB62D406EDB3640000040409224494025495240B76D5B4049926440DBB66D406EDB7640000080404992844092248940DBB68D40254992406EDB9640B76D9B400000A0404992A4409224A940DBB6AD402549B2406EDBB640B76DBB400000C0404992C4409224C940DBB6CD402549D2406EDBD640B76DDB400000E0404992E4409224E940DBB6ED402549F2406EDBF640B76DFB40000000412549024149920441"> : tensor<8x10xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18 : tensor<2x4xf32>, tensor<2x4xf64>, tensor<2x4xbf16>, tensor<2x4xf16>, tensor<2x4xf8E5M2>, tensor<3xf8E4M3FN>, tensor<3xi1>, tensor<3xi8>, tensor<3xi16>, tensor<3xi32>, tensor<3xi64>, tensor<2x2xui8>, tensor<2x2xui16>, tensor<2x2xui32>, tensor<2x2xui64>, tensor<2xcomplex<f64>>, tensor<f32>, tensor<0x3xf32>, tensor<8x10xf32>
  }
}
