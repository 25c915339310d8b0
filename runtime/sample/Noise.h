/// \file
/// The noise of sampling, which generated kernels share (kernels/sample/): the
/// pick is the argmax of logit / T + Gumbel noise, which draws from the softmax
/// (Gumbel-max). The noise comes from a counter-based generator, so it does not
/// depend on the batch, on what was drawn before or on a draft.
#ifndef LATHE_RUNTIME_SAMPLE_NOISE_H
#define LATHE_RUNTIME_SAMPLE_NOISE_H

#include "kernels/sample/Noise.h"

namespace lathe::runtime {

using kernels::gumbel;
using kernels::gumbelBound;
using kernels::minPFloor;
using kernels::naturalLog;
using kernels::noiseOf;
using kernels::NoiseWords;
using kernels::noiseWords;
using kernels::philox4x32;

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SAMPLE_NOISE_H
