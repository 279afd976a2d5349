/* The numbers of limits.def as constants: HEC_DATA_LEAST, HEC_STATE_BRIEF_NS. */
#pragma once

#define HEC_LIMIT(cause, id, value, unit, meaning, source) static const __typeof__(value) HEC_##id = value;
#define HEC_NUMBER(id, value, unit, meaning, source) static const __typeof__(value) HEC_##id = value;
#define HEC_LIMIT_ALSO(cause, id, factor, unit, meaning, source)
#define HEC_GOES(cause, low, best, confidence, source)
#include "diagnose/limits.def"
