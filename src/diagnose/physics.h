/* The rows of physics.def as constants: HEC_BURST_BY_LIMIT. */
#pragma once

#include <stdint.h>

#define HEC_PHYSICS(id, value, unit, meaning, source) static const __typeof__(value) HEC_##id = value;
#include "diagnose/physics.def"
