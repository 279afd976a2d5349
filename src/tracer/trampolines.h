/* Functions in front of the driver's: what they are, and where they are put (slots.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_TRAMPOLINES_MAX 160u

uint32_t hec_trampolines_count(void);
const char *hec_trampolines_name(uint32_t row); /* "cuLaunchKernel" */
uint32_t hec_trampolines_row(const char *name); /* the first row where there is none of that name */
/* The function in front; NULL when there is no such row. */
void *hec_trampolines_of(uint32_t row);
/* Where the driver's function is: to be set before anybody can come by. */
void hec_trampolines_set_real(uint32_t row, void *real);
/* The trampoline in front of a driver's function; the function itself where there is none. */
void *hec_trampolines_in_front(void *real);

/* The lookups of the driver go through trampolines too; callers in these modules get the driver's own functions. */
void hec_trampolines_plain_caller(uintptr_t start, uintptr_t end);

/* Whether the calling thread has a context, and its device's ordinal (HEC_TRACE_DEVICE_UNKNOWN). */
bool hec_trampolines_context(void);
uint16_t hec_trampolines_device(void);
