module @random {
  func.func private @rng_bit_generator(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui32>) {
    %0 = stablehlo.slice %arg0 [0:1] : (tensor<2xui64>) -> tensor<1xui64>
    %1 = stablehlo.slice %arg0 [1:2] : (tensor<2xui64>) -> tensor<1xui64>
    %2 = stablehlo.iota dim = 0 : tensor<6xui64>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %4 = stablehlo.add %3, %2 : tensor<6xui64>
    %5 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %6 = stablehlo.and %4, %5 : tensor<6xui64>
    %7 = stablehlo.constant dense<32> : tensor<6xui64>
    %8 = stablehlo.shift_right_logical %4, %7 : tensor<6xui64>
    %9 = stablehlo.constant dense<0> : tensor<6xui64>
    %10 = stablehlo.constant dense<0> : tensor<6xui64>
    %11 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %12 = stablehlo.and %0, %11 : tensor<1xui64>
    %13 = stablehlo.constant dense<32> : tensor<1xui64>
    %14 = stablehlo.shift_right_logical %0, %13 : tensor<1xui64>
    %15 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %16 = stablehlo.multiply %6, %15 : tensor<6xui64>
    %17 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %18 = stablehlo.multiply %9, %17 : tensor<6xui64>
    %19 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %20 = stablehlo.constant dense<32> : tensor<6xui64>
    %21 = stablehlo.shift_right_logical %18, %20 : tensor<6xui64>
    %22 = stablehlo.xor %21, %8 : tensor<6xui64>
    %23 = stablehlo.xor %22, %19 : tensor<6xui64>
    %24 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %25 = stablehlo.and %18, %24 : tensor<6xui64>
    %26 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %27 = stablehlo.constant dense<32> : tensor<6xui64>
    %28 = stablehlo.shift_right_logical %16, %27 : tensor<6xui64>
    %29 = stablehlo.xor %28, %10 : tensor<6xui64>
    %30 = stablehlo.xor %29, %26 : tensor<6xui64>
    %31 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %32 = stablehlo.and %16, %31 : tensor<6xui64>
    %33 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %34 = stablehlo.add %12, %33 : tensor<1xui64>
    %35 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %36 = stablehlo.and %34, %35 : tensor<1xui64>
    %37 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %38 = stablehlo.add %14, %37 : tensor<1xui64>
    %39 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %40 = stablehlo.and %38, %39 : tensor<1xui64>
    %41 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %42 = stablehlo.multiply %23, %41 : tensor<6xui64>
    %43 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %44 = stablehlo.multiply %30, %43 : tensor<6xui64>
    %45 = stablehlo.broadcast_in_dim %36, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %46 = stablehlo.constant dense<32> : tensor<6xui64>
    %47 = stablehlo.shift_right_logical %44, %46 : tensor<6xui64>
    %48 = stablehlo.xor %47, %25 : tensor<6xui64>
    %49 = stablehlo.xor %48, %45 : tensor<6xui64>
    %50 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %51 = stablehlo.and %44, %50 : tensor<6xui64>
    %52 = stablehlo.broadcast_in_dim %40, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %53 = stablehlo.constant dense<32> : tensor<6xui64>
    %54 = stablehlo.shift_right_logical %42, %53 : tensor<6xui64>
    %55 = stablehlo.xor %54, %32 : tensor<6xui64>
    %56 = stablehlo.xor %55, %52 : tensor<6xui64>
    %57 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %58 = stablehlo.and %42, %57 : tensor<6xui64>
    %59 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %60 = stablehlo.add %36, %59 : tensor<1xui64>
    %61 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %62 = stablehlo.and %60, %61 : tensor<1xui64>
    %63 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %64 = stablehlo.add %40, %63 : tensor<1xui64>
    %65 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %66 = stablehlo.and %64, %65 : tensor<1xui64>
    %67 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %68 = stablehlo.multiply %49, %67 : tensor<6xui64>
    %69 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %70 = stablehlo.multiply %56, %69 : tensor<6xui64>
    %71 = stablehlo.broadcast_in_dim %62, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %72 = stablehlo.constant dense<32> : tensor<6xui64>
    %73 = stablehlo.shift_right_logical %70, %72 : tensor<6xui64>
    %74 = stablehlo.xor %73, %51 : tensor<6xui64>
    %75 = stablehlo.xor %74, %71 : tensor<6xui64>
    %76 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %77 = stablehlo.and %70, %76 : tensor<6xui64>
    %78 = stablehlo.broadcast_in_dim %66, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %79 = stablehlo.constant dense<32> : tensor<6xui64>
    %80 = stablehlo.shift_right_logical %68, %79 : tensor<6xui64>
    %81 = stablehlo.xor %80, %58 : tensor<6xui64>
    %82 = stablehlo.xor %81, %78 : tensor<6xui64>
    %83 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %84 = stablehlo.and %68, %83 : tensor<6xui64>
    %85 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %86 = stablehlo.add %62, %85 : tensor<1xui64>
    %87 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %88 = stablehlo.and %86, %87 : tensor<1xui64>
    %89 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %90 = stablehlo.add %66, %89 : tensor<1xui64>
    %91 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %92 = stablehlo.and %90, %91 : tensor<1xui64>
    %93 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %94 = stablehlo.multiply %75, %93 : tensor<6xui64>
    %95 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %96 = stablehlo.multiply %82, %95 : tensor<6xui64>
    %97 = stablehlo.broadcast_in_dim %88, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %98 = stablehlo.constant dense<32> : tensor<6xui64>
    %99 = stablehlo.shift_right_logical %96, %98 : tensor<6xui64>
    %100 = stablehlo.xor %99, %77 : tensor<6xui64>
    %101 = stablehlo.xor %100, %97 : tensor<6xui64>
    %102 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %103 = stablehlo.and %96, %102 : tensor<6xui64>
    %104 = stablehlo.broadcast_in_dim %92, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %105 = stablehlo.constant dense<32> : tensor<6xui64>
    %106 = stablehlo.shift_right_logical %94, %105 : tensor<6xui64>
    %107 = stablehlo.xor %106, %84 : tensor<6xui64>
    %108 = stablehlo.xor %107, %104 : tensor<6xui64>
    %109 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %110 = stablehlo.and %94, %109 : tensor<6xui64>
    %111 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %112 = stablehlo.add %88, %111 : tensor<1xui64>
    %113 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %114 = stablehlo.and %112, %113 : tensor<1xui64>
    %115 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %116 = stablehlo.add %92, %115 : tensor<1xui64>
    %117 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %118 = stablehlo.and %116, %117 : tensor<1xui64>
    %119 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %120 = stablehlo.multiply %101, %119 : tensor<6xui64>
    %121 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %122 = stablehlo.multiply %108, %121 : tensor<6xui64>
    %123 = stablehlo.broadcast_in_dim %114, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %124 = stablehlo.constant dense<32> : tensor<6xui64>
    %125 = stablehlo.shift_right_logical %122, %124 : tensor<6xui64>
    %126 = stablehlo.xor %125, %103 : tensor<6xui64>
    %127 = stablehlo.xor %126, %123 : tensor<6xui64>
    %128 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %129 = stablehlo.and %122, %128 : tensor<6xui64>
    %130 = stablehlo.broadcast_in_dim %118, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %131 = stablehlo.constant dense<32> : tensor<6xui64>
    %132 = stablehlo.shift_right_logical %120, %131 : tensor<6xui64>
    %133 = stablehlo.xor %132, %110 : tensor<6xui64>
    %134 = stablehlo.xor %133, %130 : tensor<6xui64>
    %135 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %136 = stablehlo.and %120, %135 : tensor<6xui64>
    %137 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %138 = stablehlo.add %114, %137 : tensor<1xui64>
    %139 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %140 = stablehlo.and %138, %139 : tensor<1xui64>
    %141 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %142 = stablehlo.add %118, %141 : tensor<1xui64>
    %143 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %144 = stablehlo.and %142, %143 : tensor<1xui64>
    %145 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %146 = stablehlo.multiply %127, %145 : tensor<6xui64>
    %147 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %148 = stablehlo.multiply %134, %147 : tensor<6xui64>
    %149 = stablehlo.broadcast_in_dim %140, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %150 = stablehlo.constant dense<32> : tensor<6xui64>
    %151 = stablehlo.shift_right_logical %148, %150 : tensor<6xui64>
    %152 = stablehlo.xor %151, %129 : tensor<6xui64>
    %153 = stablehlo.xor %152, %149 : tensor<6xui64>
    %154 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %155 = stablehlo.and %148, %154 : tensor<6xui64>
    %156 = stablehlo.broadcast_in_dim %144, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %157 = stablehlo.constant dense<32> : tensor<6xui64>
    %158 = stablehlo.shift_right_logical %146, %157 : tensor<6xui64>
    %159 = stablehlo.xor %158, %136 : tensor<6xui64>
    %160 = stablehlo.xor %159, %156 : tensor<6xui64>
    %161 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %162 = stablehlo.and %146, %161 : tensor<6xui64>
    %163 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %164 = stablehlo.add %140, %163 : tensor<1xui64>
    %165 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %166 = stablehlo.and %164, %165 : tensor<1xui64>
    %167 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %168 = stablehlo.add %144, %167 : tensor<1xui64>
    %169 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %170 = stablehlo.and %168, %169 : tensor<1xui64>
    %171 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %172 = stablehlo.multiply %153, %171 : tensor<6xui64>
    %173 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %174 = stablehlo.multiply %160, %173 : tensor<6xui64>
    %175 = stablehlo.broadcast_in_dim %166, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %176 = stablehlo.constant dense<32> : tensor<6xui64>
    %177 = stablehlo.shift_right_logical %174, %176 : tensor<6xui64>
    %178 = stablehlo.xor %177, %155 : tensor<6xui64>
    %179 = stablehlo.xor %178, %175 : tensor<6xui64>
    %180 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %181 = stablehlo.and %174, %180 : tensor<6xui64>
    %182 = stablehlo.broadcast_in_dim %170, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %183 = stablehlo.constant dense<32> : tensor<6xui64>
    %184 = stablehlo.shift_right_logical %172, %183 : tensor<6xui64>
    %185 = stablehlo.xor %184, %162 : tensor<6xui64>
    %186 = stablehlo.xor %185, %182 : tensor<6xui64>
    %187 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %188 = stablehlo.and %172, %187 : tensor<6xui64>
    %189 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %190 = stablehlo.add %166, %189 : tensor<1xui64>
    %191 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %192 = stablehlo.and %190, %191 : tensor<1xui64>
    %193 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %194 = stablehlo.add %170, %193 : tensor<1xui64>
    %195 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %196 = stablehlo.and %194, %195 : tensor<1xui64>
    %197 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %198 = stablehlo.multiply %179, %197 : tensor<6xui64>
    %199 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %200 = stablehlo.multiply %186, %199 : tensor<6xui64>
    %201 = stablehlo.broadcast_in_dim %192, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %202 = stablehlo.constant dense<32> : tensor<6xui64>
    %203 = stablehlo.shift_right_logical %200, %202 : tensor<6xui64>
    %204 = stablehlo.xor %203, %181 : tensor<6xui64>
    %205 = stablehlo.xor %204, %201 : tensor<6xui64>
    %206 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %207 = stablehlo.and %200, %206 : tensor<6xui64>
    %208 = stablehlo.broadcast_in_dim %196, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %209 = stablehlo.constant dense<32> : tensor<6xui64>
    %210 = stablehlo.shift_right_logical %198, %209 : tensor<6xui64>
    %211 = stablehlo.xor %210, %188 : tensor<6xui64>
    %212 = stablehlo.xor %211, %208 : tensor<6xui64>
    %213 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %214 = stablehlo.and %198, %213 : tensor<6xui64>
    %215 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %216 = stablehlo.add %192, %215 : tensor<1xui64>
    %217 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %218 = stablehlo.and %216, %217 : tensor<1xui64>
    %219 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %220 = stablehlo.add %196, %219 : tensor<1xui64>
    %221 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %222 = stablehlo.and %220, %221 : tensor<1xui64>
    %223 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %224 = stablehlo.multiply %205, %223 : tensor<6xui64>
    %225 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %226 = stablehlo.multiply %212, %225 : tensor<6xui64>
    %227 = stablehlo.broadcast_in_dim %218, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %228 = stablehlo.constant dense<32> : tensor<6xui64>
    %229 = stablehlo.shift_right_logical %226, %228 : tensor<6xui64>
    %230 = stablehlo.xor %229, %207 : tensor<6xui64>
    %231 = stablehlo.xor %230, %227 : tensor<6xui64>
    %232 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %233 = stablehlo.and %226, %232 : tensor<6xui64>
    %234 = stablehlo.broadcast_in_dim %222, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %235 = stablehlo.constant dense<32> : tensor<6xui64>
    %236 = stablehlo.shift_right_logical %224, %235 : tensor<6xui64>
    %237 = stablehlo.xor %236, %214 : tensor<6xui64>
    %238 = stablehlo.xor %237, %234 : tensor<6xui64>
    %239 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %240 = stablehlo.and %224, %239 : tensor<6xui64>
    %241 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %242 = stablehlo.add %218, %241 : tensor<1xui64>
    %243 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %244 = stablehlo.and %242, %243 : tensor<1xui64>
    %245 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %246 = stablehlo.add %222, %245 : tensor<1xui64>
    %247 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %248 = stablehlo.and %246, %247 : tensor<1xui64>
    %249 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %250 = stablehlo.multiply %231, %249 : tensor<6xui64>
    %251 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %252 = stablehlo.multiply %238, %251 : tensor<6xui64>
    %253 = stablehlo.broadcast_in_dim %244, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %254 = stablehlo.constant dense<32> : tensor<6xui64>
    %255 = stablehlo.shift_right_logical %252, %254 : tensor<6xui64>
    %256 = stablehlo.xor %255, %233 : tensor<6xui64>
    %257 = stablehlo.xor %256, %253 : tensor<6xui64>
    %258 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %259 = stablehlo.and %252, %258 : tensor<6xui64>
    %260 = stablehlo.broadcast_in_dim %248, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %261 = stablehlo.constant dense<32> : tensor<6xui64>
    %262 = stablehlo.shift_right_logical %250, %261 : tensor<6xui64>
    %263 = stablehlo.xor %262, %240 : tensor<6xui64>
    %264 = stablehlo.xor %263, %260 : tensor<6xui64>
    %265 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %266 = stablehlo.and %250, %265 : tensor<6xui64>
    %267 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %268 = stablehlo.add %244, %267 : tensor<1xui64>
    %269 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %270 = stablehlo.and %268, %269 : tensor<1xui64>
    %271 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %272 = stablehlo.add %248, %271 : tensor<1xui64>
    %273 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %274 = stablehlo.and %272, %273 : tensor<1xui64>
    %275 = stablehlo.convert %257 : (tensor<6xui64>) -> tensor<6xui32>
    %276 = stablehlo.constant dense<6> : tensor<1xui64>
    %277 = stablehlo.add %1, %276 : tensor<1xui64>
    %278 = stablehlo.concatenate %0, %277, dim = 0 : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
    %279 = stablehlo.reshape %275 : (tensor<6xui32>) -> tensor<2x3xui32>
    return %278, %279 : tensor<2xui64>, tensor<2x3xui32>
  }
  func.func private @rng_bit_generator.1(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xi64>) {
    %0 = stablehlo.slice %arg0 [0:1] : (tensor<2xui64>) -> tensor<1xui64>
    %1 = stablehlo.slice %arg0 [1:2] : (tensor<2xui64>) -> tensor<1xui64>
    %2 = stablehlo.iota dim = 0 : tensor<6xui64>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %4 = stablehlo.add %3, %2 : tensor<6xui64>
    %5 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %6 = stablehlo.and %4, %5 : tensor<6xui64>
    %7 = stablehlo.constant dense<32> : tensor<6xui64>
    %8 = stablehlo.shift_right_logical %4, %7 : tensor<6xui64>
    %9 = stablehlo.constant dense<0> : tensor<6xui64>
    %10 = stablehlo.constant dense<0> : tensor<6xui64>
    %11 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %12 = stablehlo.and %0, %11 : tensor<1xui64>
    %13 = stablehlo.constant dense<32> : tensor<1xui64>
    %14 = stablehlo.shift_right_logical %0, %13 : tensor<1xui64>
    %15 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %16 = stablehlo.multiply %6, %15 : tensor<6xui64>
    %17 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %18 = stablehlo.multiply %9, %17 : tensor<6xui64>
    %19 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %20 = stablehlo.constant dense<32> : tensor<6xui64>
    %21 = stablehlo.shift_right_logical %18, %20 : tensor<6xui64>
    %22 = stablehlo.xor %21, %8 : tensor<6xui64>
    %23 = stablehlo.xor %22, %19 : tensor<6xui64>
    %24 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %25 = stablehlo.and %18, %24 : tensor<6xui64>
    %26 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %27 = stablehlo.constant dense<32> : tensor<6xui64>
    %28 = stablehlo.shift_right_logical %16, %27 : tensor<6xui64>
    %29 = stablehlo.xor %28, %10 : tensor<6xui64>
    %30 = stablehlo.xor %29, %26 : tensor<6xui64>
    %31 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %32 = stablehlo.and %16, %31 : tensor<6xui64>
    %33 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %34 = stablehlo.add %12, %33 : tensor<1xui64>
    %35 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %36 = stablehlo.and %34, %35 : tensor<1xui64>
    %37 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %38 = stablehlo.add %14, %37 : tensor<1xui64>
    %39 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %40 = stablehlo.and %38, %39 : tensor<1xui64>
    %41 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %42 = stablehlo.multiply %23, %41 : tensor<6xui64>
    %43 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %44 = stablehlo.multiply %30, %43 : tensor<6xui64>
    %45 = stablehlo.broadcast_in_dim %36, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %46 = stablehlo.constant dense<32> : tensor<6xui64>
    %47 = stablehlo.shift_right_logical %44, %46 : tensor<6xui64>
    %48 = stablehlo.xor %47, %25 : tensor<6xui64>
    %49 = stablehlo.xor %48, %45 : tensor<6xui64>
    %50 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %51 = stablehlo.and %44, %50 : tensor<6xui64>
    %52 = stablehlo.broadcast_in_dim %40, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %53 = stablehlo.constant dense<32> : tensor<6xui64>
    %54 = stablehlo.shift_right_logical %42, %53 : tensor<6xui64>
    %55 = stablehlo.xor %54, %32 : tensor<6xui64>
    %56 = stablehlo.xor %55, %52 : tensor<6xui64>
    %57 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %58 = stablehlo.and %42, %57 : tensor<6xui64>
    %59 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %60 = stablehlo.add %36, %59 : tensor<1xui64>
    %61 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %62 = stablehlo.and %60, %61 : tensor<1xui64>
    %63 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %64 = stablehlo.add %40, %63 : tensor<1xui64>
    %65 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %66 = stablehlo.and %64, %65 : tensor<1xui64>
    %67 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %68 = stablehlo.multiply %49, %67 : tensor<6xui64>
    %69 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %70 = stablehlo.multiply %56, %69 : tensor<6xui64>
    %71 = stablehlo.broadcast_in_dim %62, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %72 = stablehlo.constant dense<32> : tensor<6xui64>
    %73 = stablehlo.shift_right_logical %70, %72 : tensor<6xui64>
    %74 = stablehlo.xor %73, %51 : tensor<6xui64>
    %75 = stablehlo.xor %74, %71 : tensor<6xui64>
    %76 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %77 = stablehlo.and %70, %76 : tensor<6xui64>
    %78 = stablehlo.broadcast_in_dim %66, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %79 = stablehlo.constant dense<32> : tensor<6xui64>
    %80 = stablehlo.shift_right_logical %68, %79 : tensor<6xui64>
    %81 = stablehlo.xor %80, %58 : tensor<6xui64>
    %82 = stablehlo.xor %81, %78 : tensor<6xui64>
    %83 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %84 = stablehlo.and %68, %83 : tensor<6xui64>
    %85 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %86 = stablehlo.add %62, %85 : tensor<1xui64>
    %87 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %88 = stablehlo.and %86, %87 : tensor<1xui64>
    %89 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %90 = stablehlo.add %66, %89 : tensor<1xui64>
    %91 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %92 = stablehlo.and %90, %91 : tensor<1xui64>
    %93 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %94 = stablehlo.multiply %75, %93 : tensor<6xui64>
    %95 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %96 = stablehlo.multiply %82, %95 : tensor<6xui64>
    %97 = stablehlo.broadcast_in_dim %88, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %98 = stablehlo.constant dense<32> : tensor<6xui64>
    %99 = stablehlo.shift_right_logical %96, %98 : tensor<6xui64>
    %100 = stablehlo.xor %99, %77 : tensor<6xui64>
    %101 = stablehlo.xor %100, %97 : tensor<6xui64>
    %102 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %103 = stablehlo.and %96, %102 : tensor<6xui64>
    %104 = stablehlo.broadcast_in_dim %92, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %105 = stablehlo.constant dense<32> : tensor<6xui64>
    %106 = stablehlo.shift_right_logical %94, %105 : tensor<6xui64>
    %107 = stablehlo.xor %106, %84 : tensor<6xui64>
    %108 = stablehlo.xor %107, %104 : tensor<6xui64>
    %109 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %110 = stablehlo.and %94, %109 : tensor<6xui64>
    %111 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %112 = stablehlo.add %88, %111 : tensor<1xui64>
    %113 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %114 = stablehlo.and %112, %113 : tensor<1xui64>
    %115 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %116 = stablehlo.add %92, %115 : tensor<1xui64>
    %117 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %118 = stablehlo.and %116, %117 : tensor<1xui64>
    %119 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %120 = stablehlo.multiply %101, %119 : tensor<6xui64>
    %121 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %122 = stablehlo.multiply %108, %121 : tensor<6xui64>
    %123 = stablehlo.broadcast_in_dim %114, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %124 = stablehlo.constant dense<32> : tensor<6xui64>
    %125 = stablehlo.shift_right_logical %122, %124 : tensor<6xui64>
    %126 = stablehlo.xor %125, %103 : tensor<6xui64>
    %127 = stablehlo.xor %126, %123 : tensor<6xui64>
    %128 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %129 = stablehlo.and %122, %128 : tensor<6xui64>
    %130 = stablehlo.broadcast_in_dim %118, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %131 = stablehlo.constant dense<32> : tensor<6xui64>
    %132 = stablehlo.shift_right_logical %120, %131 : tensor<6xui64>
    %133 = stablehlo.xor %132, %110 : tensor<6xui64>
    %134 = stablehlo.xor %133, %130 : tensor<6xui64>
    %135 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %136 = stablehlo.and %120, %135 : tensor<6xui64>
    %137 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %138 = stablehlo.add %114, %137 : tensor<1xui64>
    %139 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %140 = stablehlo.and %138, %139 : tensor<1xui64>
    %141 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %142 = stablehlo.add %118, %141 : tensor<1xui64>
    %143 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %144 = stablehlo.and %142, %143 : tensor<1xui64>
    %145 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %146 = stablehlo.multiply %127, %145 : tensor<6xui64>
    %147 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %148 = stablehlo.multiply %134, %147 : tensor<6xui64>
    %149 = stablehlo.broadcast_in_dim %140, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %150 = stablehlo.constant dense<32> : tensor<6xui64>
    %151 = stablehlo.shift_right_logical %148, %150 : tensor<6xui64>
    %152 = stablehlo.xor %151, %129 : tensor<6xui64>
    %153 = stablehlo.xor %152, %149 : tensor<6xui64>
    %154 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %155 = stablehlo.and %148, %154 : tensor<6xui64>
    %156 = stablehlo.broadcast_in_dim %144, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %157 = stablehlo.constant dense<32> : tensor<6xui64>
    %158 = stablehlo.shift_right_logical %146, %157 : tensor<6xui64>
    %159 = stablehlo.xor %158, %136 : tensor<6xui64>
    %160 = stablehlo.xor %159, %156 : tensor<6xui64>
    %161 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %162 = stablehlo.and %146, %161 : tensor<6xui64>
    %163 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %164 = stablehlo.add %140, %163 : tensor<1xui64>
    %165 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %166 = stablehlo.and %164, %165 : tensor<1xui64>
    %167 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %168 = stablehlo.add %144, %167 : tensor<1xui64>
    %169 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %170 = stablehlo.and %168, %169 : tensor<1xui64>
    %171 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %172 = stablehlo.multiply %153, %171 : tensor<6xui64>
    %173 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %174 = stablehlo.multiply %160, %173 : tensor<6xui64>
    %175 = stablehlo.broadcast_in_dim %166, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %176 = stablehlo.constant dense<32> : tensor<6xui64>
    %177 = stablehlo.shift_right_logical %174, %176 : tensor<6xui64>
    %178 = stablehlo.xor %177, %155 : tensor<6xui64>
    %179 = stablehlo.xor %178, %175 : tensor<6xui64>
    %180 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %181 = stablehlo.and %174, %180 : tensor<6xui64>
    %182 = stablehlo.broadcast_in_dim %170, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %183 = stablehlo.constant dense<32> : tensor<6xui64>
    %184 = stablehlo.shift_right_logical %172, %183 : tensor<6xui64>
    %185 = stablehlo.xor %184, %162 : tensor<6xui64>
    %186 = stablehlo.xor %185, %182 : tensor<6xui64>
    %187 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %188 = stablehlo.and %172, %187 : tensor<6xui64>
    %189 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %190 = stablehlo.add %166, %189 : tensor<1xui64>
    %191 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %192 = stablehlo.and %190, %191 : tensor<1xui64>
    %193 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %194 = stablehlo.add %170, %193 : tensor<1xui64>
    %195 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %196 = stablehlo.and %194, %195 : tensor<1xui64>
    %197 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %198 = stablehlo.multiply %179, %197 : tensor<6xui64>
    %199 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %200 = stablehlo.multiply %186, %199 : tensor<6xui64>
    %201 = stablehlo.broadcast_in_dim %192, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %202 = stablehlo.constant dense<32> : tensor<6xui64>
    %203 = stablehlo.shift_right_logical %200, %202 : tensor<6xui64>
    %204 = stablehlo.xor %203, %181 : tensor<6xui64>
    %205 = stablehlo.xor %204, %201 : tensor<6xui64>
    %206 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %207 = stablehlo.and %200, %206 : tensor<6xui64>
    %208 = stablehlo.broadcast_in_dim %196, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %209 = stablehlo.constant dense<32> : tensor<6xui64>
    %210 = stablehlo.shift_right_logical %198, %209 : tensor<6xui64>
    %211 = stablehlo.xor %210, %188 : tensor<6xui64>
    %212 = stablehlo.xor %211, %208 : tensor<6xui64>
    %213 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %214 = stablehlo.and %198, %213 : tensor<6xui64>
    %215 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %216 = stablehlo.add %192, %215 : tensor<1xui64>
    %217 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %218 = stablehlo.and %216, %217 : tensor<1xui64>
    %219 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %220 = stablehlo.add %196, %219 : tensor<1xui64>
    %221 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %222 = stablehlo.and %220, %221 : tensor<1xui64>
    %223 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %224 = stablehlo.multiply %205, %223 : tensor<6xui64>
    %225 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %226 = stablehlo.multiply %212, %225 : tensor<6xui64>
    %227 = stablehlo.broadcast_in_dim %218, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %228 = stablehlo.constant dense<32> : tensor<6xui64>
    %229 = stablehlo.shift_right_logical %226, %228 : tensor<6xui64>
    %230 = stablehlo.xor %229, %207 : tensor<6xui64>
    %231 = stablehlo.xor %230, %227 : tensor<6xui64>
    %232 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %233 = stablehlo.and %226, %232 : tensor<6xui64>
    %234 = stablehlo.broadcast_in_dim %222, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %235 = stablehlo.constant dense<32> : tensor<6xui64>
    %236 = stablehlo.shift_right_logical %224, %235 : tensor<6xui64>
    %237 = stablehlo.xor %236, %214 : tensor<6xui64>
    %238 = stablehlo.xor %237, %234 : tensor<6xui64>
    %239 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %240 = stablehlo.and %224, %239 : tensor<6xui64>
    %241 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %242 = stablehlo.add %218, %241 : tensor<1xui64>
    %243 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %244 = stablehlo.and %242, %243 : tensor<1xui64>
    %245 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %246 = stablehlo.add %222, %245 : tensor<1xui64>
    %247 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %248 = stablehlo.and %246, %247 : tensor<1xui64>
    %249 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %250 = stablehlo.multiply %231, %249 : tensor<6xui64>
    %251 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %252 = stablehlo.multiply %238, %251 : tensor<6xui64>
    %253 = stablehlo.broadcast_in_dim %244, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %254 = stablehlo.constant dense<32> : tensor<6xui64>
    %255 = stablehlo.shift_right_logical %252, %254 : tensor<6xui64>
    %256 = stablehlo.xor %255, %233 : tensor<6xui64>
    %257 = stablehlo.xor %256, %253 : tensor<6xui64>
    %258 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %259 = stablehlo.and %252, %258 : tensor<6xui64>
    %260 = stablehlo.broadcast_in_dim %248, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %261 = stablehlo.constant dense<32> : tensor<6xui64>
    %262 = stablehlo.shift_right_logical %250, %261 : tensor<6xui64>
    %263 = stablehlo.xor %262, %240 : tensor<6xui64>
    %264 = stablehlo.xor %263, %260 : tensor<6xui64>
    %265 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %266 = stablehlo.and %250, %265 : tensor<6xui64>
    %267 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %268 = stablehlo.add %244, %267 : tensor<1xui64>
    %269 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %270 = stablehlo.and %268, %269 : tensor<1xui64>
    %271 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %272 = stablehlo.add %248, %271 : tensor<1xui64>
    %273 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %274 = stablehlo.and %272, %273 : tensor<1xui64>
    %275 = stablehlo.constant dense<32> : tensor<6xui64>
    %276 = stablehlo.shift_left %259, %275 : tensor<6xui64>
    %277 = stablehlo.or %276, %257 : tensor<6xui64>
    %278 = stablehlo.bitcast_convert %277 : (tensor<6xui64>) -> tensor<6xi64>
    %279 = stablehlo.constant dense<6> : tensor<1xui64>
    %280 = stablehlo.add %1, %279 : tensor<1xui64>
    %281 = stablehlo.concatenate %0, %280, dim = 0 : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
    %282 = stablehlo.reshape %278 : (tensor<6xi64>) -> tensor<2x3xi64>
    return %281, %282 : tensor<2xui64>, tensor<2x3xi64>
  }
  func.func private @rng_bit_generator.2(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui8>) {
    %0 = stablehlo.slice %arg0 [0:1] : (tensor<2xui64>) -> tensor<1xui64>
    %1 = stablehlo.slice %arg0 [1:2] : (tensor<2xui64>) -> tensor<1xui64>
    %2 = stablehlo.iota dim = 0 : tensor<6xui64>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %4 = stablehlo.add %3, %2 : tensor<6xui64>
    %5 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %6 = stablehlo.and %4, %5 : tensor<6xui64>
    %7 = stablehlo.constant dense<32> : tensor<6xui64>
    %8 = stablehlo.shift_right_logical %4, %7 : tensor<6xui64>
    %9 = stablehlo.constant dense<0> : tensor<6xui64>
    %10 = stablehlo.constant dense<0> : tensor<6xui64>
    %11 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %12 = stablehlo.and %0, %11 : tensor<1xui64>
    %13 = stablehlo.constant dense<32> : tensor<1xui64>
    %14 = stablehlo.shift_right_logical %0, %13 : tensor<1xui64>
    %15 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %16 = stablehlo.multiply %6, %15 : tensor<6xui64>
    %17 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %18 = stablehlo.multiply %9, %17 : tensor<6xui64>
    %19 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %20 = stablehlo.constant dense<32> : tensor<6xui64>
    %21 = stablehlo.shift_right_logical %18, %20 : tensor<6xui64>
    %22 = stablehlo.xor %21, %8 : tensor<6xui64>
    %23 = stablehlo.xor %22, %19 : tensor<6xui64>
    %24 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %25 = stablehlo.and %18, %24 : tensor<6xui64>
    %26 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %27 = stablehlo.constant dense<32> : tensor<6xui64>
    %28 = stablehlo.shift_right_logical %16, %27 : tensor<6xui64>
    %29 = stablehlo.xor %28, %10 : tensor<6xui64>
    %30 = stablehlo.xor %29, %26 : tensor<6xui64>
    %31 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %32 = stablehlo.and %16, %31 : tensor<6xui64>
    %33 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %34 = stablehlo.add %12, %33 : tensor<1xui64>
    %35 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %36 = stablehlo.and %34, %35 : tensor<1xui64>
    %37 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %38 = stablehlo.add %14, %37 : tensor<1xui64>
    %39 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %40 = stablehlo.and %38, %39 : tensor<1xui64>
    %41 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %42 = stablehlo.multiply %23, %41 : tensor<6xui64>
    %43 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %44 = stablehlo.multiply %30, %43 : tensor<6xui64>
    %45 = stablehlo.broadcast_in_dim %36, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %46 = stablehlo.constant dense<32> : tensor<6xui64>
    %47 = stablehlo.shift_right_logical %44, %46 : tensor<6xui64>
    %48 = stablehlo.xor %47, %25 : tensor<6xui64>
    %49 = stablehlo.xor %48, %45 : tensor<6xui64>
    %50 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %51 = stablehlo.and %44, %50 : tensor<6xui64>
    %52 = stablehlo.broadcast_in_dim %40, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %53 = stablehlo.constant dense<32> : tensor<6xui64>
    %54 = stablehlo.shift_right_logical %42, %53 : tensor<6xui64>
    %55 = stablehlo.xor %54, %32 : tensor<6xui64>
    %56 = stablehlo.xor %55, %52 : tensor<6xui64>
    %57 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %58 = stablehlo.and %42, %57 : tensor<6xui64>
    %59 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %60 = stablehlo.add %36, %59 : tensor<1xui64>
    %61 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %62 = stablehlo.and %60, %61 : tensor<1xui64>
    %63 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %64 = stablehlo.add %40, %63 : tensor<1xui64>
    %65 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %66 = stablehlo.and %64, %65 : tensor<1xui64>
    %67 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %68 = stablehlo.multiply %49, %67 : tensor<6xui64>
    %69 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %70 = stablehlo.multiply %56, %69 : tensor<6xui64>
    %71 = stablehlo.broadcast_in_dim %62, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %72 = stablehlo.constant dense<32> : tensor<6xui64>
    %73 = stablehlo.shift_right_logical %70, %72 : tensor<6xui64>
    %74 = stablehlo.xor %73, %51 : tensor<6xui64>
    %75 = stablehlo.xor %74, %71 : tensor<6xui64>
    %76 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %77 = stablehlo.and %70, %76 : tensor<6xui64>
    %78 = stablehlo.broadcast_in_dim %66, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %79 = stablehlo.constant dense<32> : tensor<6xui64>
    %80 = stablehlo.shift_right_logical %68, %79 : tensor<6xui64>
    %81 = stablehlo.xor %80, %58 : tensor<6xui64>
    %82 = stablehlo.xor %81, %78 : tensor<6xui64>
    %83 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %84 = stablehlo.and %68, %83 : tensor<6xui64>
    %85 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %86 = stablehlo.add %62, %85 : tensor<1xui64>
    %87 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %88 = stablehlo.and %86, %87 : tensor<1xui64>
    %89 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %90 = stablehlo.add %66, %89 : tensor<1xui64>
    %91 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %92 = stablehlo.and %90, %91 : tensor<1xui64>
    %93 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %94 = stablehlo.multiply %75, %93 : tensor<6xui64>
    %95 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %96 = stablehlo.multiply %82, %95 : tensor<6xui64>
    %97 = stablehlo.broadcast_in_dim %88, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %98 = stablehlo.constant dense<32> : tensor<6xui64>
    %99 = stablehlo.shift_right_logical %96, %98 : tensor<6xui64>
    %100 = stablehlo.xor %99, %77 : tensor<6xui64>
    %101 = stablehlo.xor %100, %97 : tensor<6xui64>
    %102 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %103 = stablehlo.and %96, %102 : tensor<6xui64>
    %104 = stablehlo.broadcast_in_dim %92, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %105 = stablehlo.constant dense<32> : tensor<6xui64>
    %106 = stablehlo.shift_right_logical %94, %105 : tensor<6xui64>
    %107 = stablehlo.xor %106, %84 : tensor<6xui64>
    %108 = stablehlo.xor %107, %104 : tensor<6xui64>
    %109 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %110 = stablehlo.and %94, %109 : tensor<6xui64>
    %111 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %112 = stablehlo.add %88, %111 : tensor<1xui64>
    %113 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %114 = stablehlo.and %112, %113 : tensor<1xui64>
    %115 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %116 = stablehlo.add %92, %115 : tensor<1xui64>
    %117 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %118 = stablehlo.and %116, %117 : tensor<1xui64>
    %119 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %120 = stablehlo.multiply %101, %119 : tensor<6xui64>
    %121 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %122 = stablehlo.multiply %108, %121 : tensor<6xui64>
    %123 = stablehlo.broadcast_in_dim %114, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %124 = stablehlo.constant dense<32> : tensor<6xui64>
    %125 = stablehlo.shift_right_logical %122, %124 : tensor<6xui64>
    %126 = stablehlo.xor %125, %103 : tensor<6xui64>
    %127 = stablehlo.xor %126, %123 : tensor<6xui64>
    %128 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %129 = stablehlo.and %122, %128 : tensor<6xui64>
    %130 = stablehlo.broadcast_in_dim %118, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %131 = stablehlo.constant dense<32> : tensor<6xui64>
    %132 = stablehlo.shift_right_logical %120, %131 : tensor<6xui64>
    %133 = stablehlo.xor %132, %110 : tensor<6xui64>
    %134 = stablehlo.xor %133, %130 : tensor<6xui64>
    %135 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %136 = stablehlo.and %120, %135 : tensor<6xui64>
    %137 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %138 = stablehlo.add %114, %137 : tensor<1xui64>
    %139 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %140 = stablehlo.and %138, %139 : tensor<1xui64>
    %141 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %142 = stablehlo.add %118, %141 : tensor<1xui64>
    %143 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %144 = stablehlo.and %142, %143 : tensor<1xui64>
    %145 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %146 = stablehlo.multiply %127, %145 : tensor<6xui64>
    %147 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %148 = stablehlo.multiply %134, %147 : tensor<6xui64>
    %149 = stablehlo.broadcast_in_dim %140, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %150 = stablehlo.constant dense<32> : tensor<6xui64>
    %151 = stablehlo.shift_right_logical %148, %150 : tensor<6xui64>
    %152 = stablehlo.xor %151, %129 : tensor<6xui64>
    %153 = stablehlo.xor %152, %149 : tensor<6xui64>
    %154 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %155 = stablehlo.and %148, %154 : tensor<6xui64>
    %156 = stablehlo.broadcast_in_dim %144, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %157 = stablehlo.constant dense<32> : tensor<6xui64>
    %158 = stablehlo.shift_right_logical %146, %157 : tensor<6xui64>
    %159 = stablehlo.xor %158, %136 : tensor<6xui64>
    %160 = stablehlo.xor %159, %156 : tensor<6xui64>
    %161 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %162 = stablehlo.and %146, %161 : tensor<6xui64>
    %163 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %164 = stablehlo.add %140, %163 : tensor<1xui64>
    %165 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %166 = stablehlo.and %164, %165 : tensor<1xui64>
    %167 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %168 = stablehlo.add %144, %167 : tensor<1xui64>
    %169 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %170 = stablehlo.and %168, %169 : tensor<1xui64>
    %171 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %172 = stablehlo.multiply %153, %171 : tensor<6xui64>
    %173 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %174 = stablehlo.multiply %160, %173 : tensor<6xui64>
    %175 = stablehlo.broadcast_in_dim %166, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %176 = stablehlo.constant dense<32> : tensor<6xui64>
    %177 = stablehlo.shift_right_logical %174, %176 : tensor<6xui64>
    %178 = stablehlo.xor %177, %155 : tensor<6xui64>
    %179 = stablehlo.xor %178, %175 : tensor<6xui64>
    %180 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %181 = stablehlo.and %174, %180 : tensor<6xui64>
    %182 = stablehlo.broadcast_in_dim %170, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %183 = stablehlo.constant dense<32> : tensor<6xui64>
    %184 = stablehlo.shift_right_logical %172, %183 : tensor<6xui64>
    %185 = stablehlo.xor %184, %162 : tensor<6xui64>
    %186 = stablehlo.xor %185, %182 : tensor<6xui64>
    %187 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %188 = stablehlo.and %172, %187 : tensor<6xui64>
    %189 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %190 = stablehlo.add %166, %189 : tensor<1xui64>
    %191 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %192 = stablehlo.and %190, %191 : tensor<1xui64>
    %193 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %194 = stablehlo.add %170, %193 : tensor<1xui64>
    %195 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %196 = stablehlo.and %194, %195 : tensor<1xui64>
    %197 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %198 = stablehlo.multiply %179, %197 : tensor<6xui64>
    %199 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %200 = stablehlo.multiply %186, %199 : tensor<6xui64>
    %201 = stablehlo.broadcast_in_dim %192, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %202 = stablehlo.constant dense<32> : tensor<6xui64>
    %203 = stablehlo.shift_right_logical %200, %202 : tensor<6xui64>
    %204 = stablehlo.xor %203, %181 : tensor<6xui64>
    %205 = stablehlo.xor %204, %201 : tensor<6xui64>
    %206 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %207 = stablehlo.and %200, %206 : tensor<6xui64>
    %208 = stablehlo.broadcast_in_dim %196, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %209 = stablehlo.constant dense<32> : tensor<6xui64>
    %210 = stablehlo.shift_right_logical %198, %209 : tensor<6xui64>
    %211 = stablehlo.xor %210, %188 : tensor<6xui64>
    %212 = stablehlo.xor %211, %208 : tensor<6xui64>
    %213 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %214 = stablehlo.and %198, %213 : tensor<6xui64>
    %215 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %216 = stablehlo.add %192, %215 : tensor<1xui64>
    %217 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %218 = stablehlo.and %216, %217 : tensor<1xui64>
    %219 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %220 = stablehlo.add %196, %219 : tensor<1xui64>
    %221 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %222 = stablehlo.and %220, %221 : tensor<1xui64>
    %223 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %224 = stablehlo.multiply %205, %223 : tensor<6xui64>
    %225 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %226 = stablehlo.multiply %212, %225 : tensor<6xui64>
    %227 = stablehlo.broadcast_in_dim %218, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %228 = stablehlo.constant dense<32> : tensor<6xui64>
    %229 = stablehlo.shift_right_logical %226, %228 : tensor<6xui64>
    %230 = stablehlo.xor %229, %207 : tensor<6xui64>
    %231 = stablehlo.xor %230, %227 : tensor<6xui64>
    %232 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %233 = stablehlo.and %226, %232 : tensor<6xui64>
    %234 = stablehlo.broadcast_in_dim %222, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %235 = stablehlo.constant dense<32> : tensor<6xui64>
    %236 = stablehlo.shift_right_logical %224, %235 : tensor<6xui64>
    %237 = stablehlo.xor %236, %214 : tensor<6xui64>
    %238 = stablehlo.xor %237, %234 : tensor<6xui64>
    %239 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %240 = stablehlo.and %224, %239 : tensor<6xui64>
    %241 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %242 = stablehlo.add %218, %241 : tensor<1xui64>
    %243 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %244 = stablehlo.and %242, %243 : tensor<1xui64>
    %245 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %246 = stablehlo.add %222, %245 : tensor<1xui64>
    %247 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %248 = stablehlo.and %246, %247 : tensor<1xui64>
    %249 = stablehlo.constant dense<3528531795> : tensor<6xui64>
    %250 = stablehlo.multiply %231, %249 : tensor<6xui64>
    %251 = stablehlo.constant dense<3449720151> : tensor<6xui64>
    %252 = stablehlo.multiply %238, %251 : tensor<6xui64>
    %253 = stablehlo.broadcast_in_dim %244, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %254 = stablehlo.constant dense<32> : tensor<6xui64>
    %255 = stablehlo.shift_right_logical %252, %254 : tensor<6xui64>
    %256 = stablehlo.xor %255, %233 : tensor<6xui64>
    %257 = stablehlo.xor %256, %253 : tensor<6xui64>
    %258 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %259 = stablehlo.and %252, %258 : tensor<6xui64>
    %260 = stablehlo.broadcast_in_dim %248, dims = [0] : (tensor<1xui64>) -> tensor<6xui64>
    %261 = stablehlo.constant dense<32> : tensor<6xui64>
    %262 = stablehlo.shift_right_logical %250, %261 : tensor<6xui64>
    %263 = stablehlo.xor %262, %240 : tensor<6xui64>
    %264 = stablehlo.xor %263, %260 : tensor<6xui64>
    %265 = stablehlo.constant dense<4294967295> : tensor<6xui64>
    %266 = stablehlo.and %250, %265 : tensor<6xui64>
    %267 = stablehlo.constant dense<2654435769> : tensor<1xui64>
    %268 = stablehlo.add %244, %267 : tensor<1xui64>
    %269 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %270 = stablehlo.and %268, %269 : tensor<1xui64>
    %271 = stablehlo.constant dense<3144134277> : tensor<1xui64>
    %272 = stablehlo.add %248, %271 : tensor<1xui64>
    %273 = stablehlo.constant dense<4294967295> : tensor<1xui64>
    %274 = stablehlo.and %272, %273 : tensor<1xui64>
    %275 = stablehlo.constant dense<255> : tensor<6xui64>
    %276 = stablehlo.and %257, %275 : tensor<6xui64>
    %277 = stablehlo.convert %276 : (tensor<6xui64>) -> tensor<6xui8>
    %278 = stablehlo.constant dense<6> : tensor<1xui64>
    %279 = stablehlo.add %1, %278 : tensor<1xui64>
    %280 = stablehlo.concatenate %0, %279, dim = 0 : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
    %281 = stablehlo.reshape %277 : (tensor<6xui8>) -> tensor<2x3xui8>
    return %280, %281 : tensor<2xui64>, tensor<2x3xui8>
  }
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui32>, tensor<2xui64>, tensor<2x3xi64>, tensor<2xui64>, tensor<2x3xui8>) {
    %0:2 = stablehlo.composite "neuron.rng_bit_generator" %arg0 {decomposition = @rng_bit_generator} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui32>)
    %1:2 = stablehlo.composite "neuron.rng_bit_generator" %0#0 {decomposition = @rng_bit_generator.1} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xi64>)
    %2:2 = stablehlo.composite "neuron.rng_bit_generator" %1#0 {decomposition = @rng_bit_generator.2} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui8>)
    return %0#0, %0#1, %1#0, %1#1, %2#0, %2#1 : tensor<2xui64>, tensor<2x3xui32>, tensor<2xui64>, tensor<2x3xi64>, tensor<2xui64>, tensor<2x3xui8>
  }
}
