// The iteration space of a region: the common refinement of its commands' canonical spaces.
#pragma once

#include "neuron/eager/planner.h"

namespace neuron::eager {

// Begins a region with one command.
void start_space(Region& region, const CanonicalCommand& command);
// Whether the command's space and the region's have a common refinement that keeps reduced dimensions whole.
bool space_fits(const Region& region, const CanonicalCommand& command);
// Refines the region's space by the command's; space_fits() held.
void join_space(Region& region, const CanonicalCommand& command);
// Sizes of the region's refined space, outermost first.
Space refined_space(const Region& region);
// Strides of one operand over the refined space, from its strides over the command's canonical space.
void refine_strides(const Space& refined, const Space& canonical, const int64_t* strides, int64_t* result);

}  // namespace neuron::eager
