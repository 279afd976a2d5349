/* Names of the simulated devices, and which of them CUDA_VISIBLE_DEVICES lets a program use. */
#pragma once

#include "sim/spec.h"

#define SIM_UUID_SIZE 48
#define SIM_BUS_ID_SIZE 32

void sim_uuid(int device, char text[SIM_UUID_SIZE]);                   /* GPU-51a1ed00-0000-4000-8000-... */
void sim_mig_uuid(int device, int instance, char text[SIM_UUID_SIZE]); /* MIG-51a1ed00-0000-4001-8000-... */
unsigned sim_bus(int device); /* bus number; domain, device and function are 0 */

/* The device (and MIG instance, 0 without MIG) that a program sees as CUDA device `ordinal`. visible is the value of
 * CUDA_VISIBLE_DEVICES (NULL: unset): indexes, UUIDs or their beginnings, MIG UUIDs; as in CUDA the list ends at the
 * first entry that names no device. HEC_ERR_NOTFOUND with a sentence. */
int sim_visible_device(const struct sim_spec *spec, const char *visible, int ordinal, int *device, int *instance,
                       struct hec_why *why);
