module @functions_c64 {
  func.func private @acos(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.multiply %arg0, %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.subtract %4, %3 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.sqrt %5 : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.multiply %2, %6 : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.add %arg0, %7 : tensor<4x8xcomplex<f32>>
    %9 = stablehlo.log %8 : tensor<4x8xcomplex<f32>>
    %10 = stablehlo.multiply %2, %9 : tensor<4x8xcomplex<f32>>
    %11 = stablehlo.negate %10 : tensor<4x8xcomplex<f32>>
    return %11 : tensor<4x8xcomplex<f32>>
  }
  func.func private @acosh(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.subtract %arg0, %3 : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.sqrt %4 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.add %arg0, %6 : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.sqrt %7 : tensor<4x8xcomplex<f32>>
    %9 = stablehlo.multiply %8, %5 : tensor<4x8xcomplex<f32>>
    %10 = stablehlo.add %arg0, %9 : tensor<4x8xcomplex<f32>>
    %11 = stablehlo.log %10 : tensor<4x8xcomplex<f32>>
    return %11 : tensor<4x8xcomplex<f32>>
  }
  func.func private @asin(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.multiply %arg0, %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.subtract %4, %3 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.sqrt %5 : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.multiply %2, %arg0 : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.add %7, %6 : tensor<4x8xcomplex<f32>>
    %9 = stablehlo.log %8 : tensor<4x8xcomplex<f32>>
    %10 = stablehlo.multiply %2, %9 : tensor<4x8xcomplex<f32>>
    %11 = stablehlo.negate %10 : tensor<4x8xcomplex<f32>>
    return %11 : tensor<4x8xcomplex<f32>>
  }
  func.func private @asinh(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.multiply %arg0, %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.add %3, %4 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.sqrt %5 : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.add %arg0, %6 : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.log %7 : tensor<4x8xcomplex<f32>>
    return %8 : tensor<4x8xcomplex<f32>>
  }
  func.func private @atan(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.multiply %2, %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.add %3, %4 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.log %5 : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.subtract %7, %3 : tensor<4x8xcomplex<f32>>
    %9 = stablehlo.log %8 : tensor<4x8xcomplex<f32>>
    %10 = stablehlo.subtract %9, %6 : tensor<4x8xcomplex<f32>>
    %11 = stablehlo.multiply %2, %10 : tensor<4x8xcomplex<f32>>
    %12 = stablehlo.constant dense<(0.5, 0.0)> : tensor<4x8xcomplex<f32>>
    %13 = stablehlo.multiply %11, %12 : tensor<4x8xcomplex<f32>>
    return %13 : tensor<4x8xcomplex<f32>>
  }
  func.func private @atanh(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.subtract %3, %arg0 : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.log %4 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.constant dense<(1.0, 0.0)> : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.add %arg0, %6 : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.log %7 : tensor<4x8xcomplex<f32>>
    %9 = stablehlo.subtract %8, %5 : tensor<4x8xcomplex<f32>>
    %10 = stablehlo.constant dense<(0.5, 0.0)> : tensor<4x8xcomplex<f32>>
    %11 = stablehlo.multiply %9, %10 : tensor<4x8xcomplex<f32>>
    return %11 : tensor<4x8xcomplex<f32>>
  }
  func.func private @cosh(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.negate %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.exponential %3 : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.exponential %arg0 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.add %5, %4 : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.constant dense<(0.5, 0.0)> : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.multiply %6, %7 : tensor<4x8xcomplex<f32>>
    return %8 : tensor<4x8xcomplex<f32>>
  }
  func.func private @exp2(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.constant dense<(0.6931472, 0.0)> : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.multiply %arg0, %3 : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.exponential %4 : tensor<4x8xcomplex<f32>>
    return %5 : tensor<4x8xcomplex<f32>>
  }
  func.func private @log10(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.log %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.constant dense<(0.4342945, 0.0)> : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.multiply %3, %4 : tensor<4x8xcomplex<f32>>
    return %5 : tensor<4x8xcomplex<f32>>
  }
  func.func private @log2(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.log %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.constant dense<(1.442695, 0.0)> : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.multiply %3, %4 : tensor<4x8xcomplex<f32>>
    return %5 : tensor<4x8xcomplex<f32>>
  }
  func.func private @sinh(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %2 = stablehlo.complex %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.negate %arg0 : tensor<4x8xcomplex<f32>>
    %4 = stablehlo.exponential %3 : tensor<4x8xcomplex<f32>>
    %5 = stablehlo.exponential %arg0 : tensor<4x8xcomplex<f32>>
    %6 = stablehlo.subtract %5, %4 : tensor<4x8xcomplex<f32>>
    %7 = stablehlo.constant dense<(0.5, 0.0)> : tensor<4x8xcomplex<f32>>
    %8 = stablehlo.multiply %6, %7 : tensor<4x8xcomplex<f32>>
    return %8 : tensor<4x8xcomplex<f32>>
  }
  func.func public @main(%arg0: tensor<4x8xcomplex<f32>>) -> (tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>) {
    %0 = stablehlo.composite "neuron.acos" %arg0 {decomposition = @acos} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %1 = stablehlo.composite "neuron.acosh" %arg0 {decomposition = @acosh} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %2 = stablehlo.composite "neuron.asin" %arg0 {decomposition = @asin} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %3 = stablehlo.composite "neuron.asinh" %arg0 {decomposition = @asinh} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %4 = stablehlo.composite "neuron.atan" %arg0 {decomposition = @atan} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %5 = stablehlo.composite "neuron.atanh" %arg0 {decomposition = @atanh} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %6 = stablehlo.composite "neuron.cosh" %arg0 {decomposition = @cosh} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %7 = stablehlo.composite "neuron.exp2" %arg0 {decomposition = @exp2} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %8 = stablehlo.composite "neuron.log10" %arg0 {decomposition = @log10} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %9 = stablehlo.composite "neuron.log2" %arg0 {decomposition = @log2} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %10 = stablehlo.composite "neuron.sinh" %arg0 {decomposition = @sinh} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>
  }
}
