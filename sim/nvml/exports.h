/* Prototypes of what the double exports, in NVML's names and shapes. */
#pragma once

#include "sim/nvml/abi.h"

int hecSimulatedGpu(char *profile, unsigned length);

/* system.c */
sim_nvml_ret nvmlInit(void);
sim_nvml_ret nvmlInit_v2(void);
sim_nvml_ret nvmlInitWithFlags(unsigned flags);
sim_nvml_ret nvmlShutdown(void);
const char *nvmlErrorString(sim_nvml_ret ret);
sim_nvml_ret nvmlSystemGetDriverVersion(char *version, unsigned length);
sim_nvml_ret nvmlSystemGetNVMLVersion(char *version, unsigned length);
sim_nvml_ret nvmlSystemGetCudaDriverVersion(int *version);
sim_nvml_ret nvmlSystemGetCudaDriverVersion_v2(int *version);
sim_nvml_ret nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length);
sim_nvml_ret nvmlDeviceGetCount(unsigned *count);
sim_nvml_ret nvmlDeviceGetCount_v2(unsigned *count);

/* device.c */
sim_nvml_ret nvmlDeviceGetHandleByIndex(unsigned index, sim_nvml_device *device);
sim_nvml_ret nvmlDeviceGetHandleByIndex_v2(unsigned index, sim_nvml_device *device);
sim_nvml_ret nvmlDeviceGetHandleByUUID(const char *uuid, sim_nvml_device *device);
sim_nvml_ret nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, sim_nvml_device *device);
sim_nvml_ret nvmlDeviceGetName(sim_nvml_device device, char *name, unsigned length);
sim_nvml_ret nvmlDeviceGetUUID(sim_nvml_device device, char *uuid, unsigned length);
sim_nvml_ret nvmlDeviceGetIndex(sim_nvml_device device, unsigned *index);
sim_nvml_ret nvmlDeviceGetMinorNumber(sim_nvml_device device, unsigned *minor);
sim_nvml_ret nvmlDeviceGetSerial(sim_nvml_device device, char *serial, unsigned length);
sim_nvml_ret nvmlDeviceGetPciInfo_v3(sim_nvml_device device, struct sim_nvml_pci *pci);
sim_nvml_ret nvmlDeviceGetArchitecture(sim_nvml_device device, unsigned *architecture);
sim_nvml_ret nvmlDeviceGetCudaComputeCapability(sim_nvml_device device, int *major, int *minor);
sim_nvml_ret nvmlDeviceGetPersistenceMode(sim_nvml_device device, unsigned *mode);
sim_nvml_ret nvmlDeviceGetMemoryInfo(sim_nvml_device device, struct sim_nvml_memory *memory);
sim_nvml_ret nvmlDeviceGetMemoryInfo_v2(sim_nvml_device device, struct sim_nvml_memory_v2 *memory);
sim_nvml_ret nvmlDeviceGetCurrPcieLinkGeneration(sim_nvml_device device, unsigned *generation);
sim_nvml_ret nvmlDeviceGetCurrPcieLinkWidth(sim_nvml_device device, unsigned *width);
sim_nvml_ret nvmlDeviceGetMaxPcieLinkGeneration(sim_nvml_device device, unsigned *generation);
sim_nvml_ret nvmlDeviceGetMaxPcieLinkWidth(sim_nvml_device device, unsigned *width);
sim_nvml_ret nvmlDeviceGetPcieReplayCounter(sim_nvml_device device, unsigned *count);
sim_nvml_ret nvmlDeviceGetMigMode(sim_nvml_device device, unsigned *current, unsigned *pending);
sim_nvml_ret nvmlDeviceIsMigDeviceHandle(sim_nvml_device device, unsigned *is_mig);
sim_nvml_ret nvmlDeviceGetMaxMigDeviceCount(sim_nvml_device device, unsigned *count);
sim_nvml_ret nvmlDeviceGetMigDeviceHandleByIndex(sim_nvml_device device, unsigned index, sim_nvml_device *mig);
sim_nvml_ret nvmlDeviceGetAttributes_v2(sim_nvml_device device, struct sim_nvml_attributes *attributes);
sim_nvml_ret nvmlDeviceGetDeviceHandleFromMigDeviceHandle(sim_nvml_device mig, sim_nvml_device *device);
sim_nvml_ret nvmlDeviceGetGpuInstanceId(sim_nvml_device device, unsigned *id);
sim_nvml_ret nvmlDeviceGetComputeInstanceId(sim_nvml_device device, unsigned *id);

/* power.c */
sim_nvml_ret nvmlDeviceGetTotalEnergyConsumption(sim_nvml_device device, unsigned long long *energy_mj);
sim_nvml_ret nvmlDeviceGetSamples(sim_nvml_device device, int type, unsigned long long last_seen_us, int *value_type,
                                  unsigned *count, struct sim_nvml_sample *samples);
sim_nvml_ret nvmlDeviceGetFieldValues(sim_nvml_device device, int count, struct sim_nvml_field *fields);
sim_nvml_ret nvmlDeviceGetPowerUsage(sim_nvml_device device, unsigned *power_mw);
sim_nvml_ret nvmlDeviceGetPowerManagementMode(sim_nvml_device device, unsigned *mode);
sim_nvml_ret nvmlDeviceGetPowerManagementLimit(sim_nvml_device device, unsigned *limit_mw);
sim_nvml_ret nvmlDeviceGetPowerManagementDefaultLimit(sim_nvml_device device, unsigned *limit_mw);
sim_nvml_ret nvmlDeviceGetPowerManagementLimitConstraints(sim_nvml_device device, unsigned *min_mw, unsigned *max_mw);
sim_nvml_ret nvmlDeviceGetEnforcedPowerLimit(sim_nvml_device device, unsigned *limit_mw);
sim_nvml_ret nvmlDeviceSetPowerManagementLimit(sim_nvml_device device, unsigned limit_mw);
sim_nvml_ret nvmlDeviceSetGpuLockedClocks(sim_nvml_device device, unsigned min_mhz, unsigned max_mhz);
sim_nvml_ret nvmlDeviceResetGpuLockedClocks(sim_nvml_device device);

/* state.c */
sim_nvml_ret nvmlDeviceGetEncoderUtilization(sim_nvml_device device, unsigned *percent, unsigned *period_us);
sim_nvml_ret nvmlDeviceGetDecoderUtilization(sim_nvml_device device, unsigned *percent, unsigned *period_us);
sim_nvml_ret nvmlDeviceGetRemappedRows(sim_nvml_device device, unsigned *correctable, unsigned *uncorrectable,
                                       unsigned *pending, unsigned *failed);
sim_nvml_ret nvmlDeviceGetUtilizationRates(sim_nvml_device device, struct sim_nvml_utilization *utilization);
sim_nvml_ret nvmlDeviceGetClockInfo(sim_nvml_device device, int type, unsigned *mhz);
sim_nvml_ret nvmlDeviceGetMaxClockInfo(sim_nvml_device device, int type, unsigned *mhz);
sim_nvml_ret nvmlDeviceGetCurrentClocksThrottleReasons(sim_nvml_device device, unsigned long long *reasons);
sim_nvml_ret nvmlDeviceGetCurrentClocksEventReasons(sim_nvml_device device, unsigned long long *reasons);
sim_nvml_ret nvmlDeviceGetPerformanceState(sim_nvml_device device, int *state);
sim_nvml_ret nvmlDeviceGetTemperature(sim_nvml_device device, int sensor, unsigned *celsius);
sim_nvml_ret nvmlDeviceGetTemperatureV(sim_nvml_device device, struct sim_nvml_temperature *temperature);
sim_nvml_ret nvmlDeviceGetTemperatureThreshold(sim_nvml_device device, int threshold, unsigned *celsius);
sim_nvml_ret nvmlDeviceGetFanSpeed(sim_nvml_device device, unsigned *percent);
sim_nvml_ret nvmlDeviceGetPcieThroughput(sim_nvml_device device, int counter, unsigned *kib_per_s);

/* process.c */
sim_nvml_ret nvmlDeviceGetComputeRunningProcesses(sim_nvml_device device, unsigned *count,
                                                  struct sim_nvml_process_v1 *processes);
sim_nvml_ret nvmlDeviceGetComputeRunningProcesses_v2(sim_nvml_device device, unsigned *count,
                                                     struct sim_nvml_process_v2 *processes);
sim_nvml_ret nvmlDeviceGetComputeRunningProcesses_v3(sim_nvml_device device, unsigned *count,
                                                     struct sim_nvml_process_v2 *processes);
sim_nvml_ret nvmlDeviceGetGraphicsRunningProcesses(sim_nvml_device device, unsigned *count,
                                                   struct sim_nvml_process_v1 *processes);
sim_nvml_ret nvmlDeviceGetGraphicsRunningProcesses_v2(sim_nvml_device device, unsigned *count,
                                                      struct sim_nvml_process_v2 *processes);
sim_nvml_ret nvmlDeviceGetGraphicsRunningProcesses_v3(sim_nvml_device device, unsigned *count,
                                                      struct sim_nvml_process_v2 *processes);
sim_nvml_ret nvmlDeviceGetProcessUtilization(sim_nvml_device device, struct sim_nvml_process_utilization *entries,
                                             unsigned *count, unsigned long long last_seen_us);
sim_nvml_ret nvmlDeviceGetProcessesUtilizationInfo(sim_nvml_device device, struct sim_nvml_processes_utilization *info);

/* event.c */
sim_nvml_ret nvmlEventSetCreate(sim_nvml_event_set *set);
sim_nvml_ret nvmlEventSetFree(sim_nvml_event_set set);
sim_nvml_ret nvmlDeviceRegisterEvents(sim_nvml_device device, unsigned long long types, sim_nvml_event_set set);
sim_nvml_ret nvmlEventSetWait(sim_nvml_event_set set, struct sim_nvml_event *event, unsigned timeout_ms);
sim_nvml_ret nvmlEventSetWait_v2(sim_nvml_event_set set, struct sim_nvml_event *event, unsigned timeout_ms);

/* gpm.c */
sim_nvml_ret nvmlGpmQueryDeviceSupport(sim_nvml_device device, struct sim_nvml_gpm_support *support);
sim_nvml_ret nvmlGpmSampleAlloc(sim_nvml_gpm_sample *sample);
sim_nvml_ret nvmlGpmSampleFree(sim_nvml_gpm_sample sample);
sim_nvml_ret nvmlGpmSampleGet(sim_nvml_device device, sim_nvml_gpm_sample sample);
sim_nvml_ret nvmlGpmMigSampleGet(sim_nvml_device device, unsigned instance, sim_nvml_gpm_sample sample);
sim_nvml_ret nvmlGpmMetricsGet(struct sim_nvml_gpm_metrics *metrics);
