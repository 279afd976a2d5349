/* Our declarations against NVIDIA's nvml.h, where it is available: at compile time through the include path (target
 * `abi` adds the folder of the wheel nvidia-nvml-dev), else the test is skipped. The real header and ours share no name. */
#include "driver/nvml.h"
#include "model/throttle.h"
#include "unit.h"

#if __has_include(<nvml.h>)
#define HAVE_NVML 1
#include <nvml.h>
#endif

#ifdef HAVE_NVML

#define SAME_SIZE(ours, theirs) assert_int_equal(sizeof(ours), sizeof(theirs))
#define SAME_FIELD(ours, a, theirs, b)                                                                                 \
    do {                                                                                                               \
        assert_int_equal(offsetof(ours, a), offsetof(theirs, b));                                                      \
        assert_int_equal(sizeof(((ours *)0)->a), sizeof(((theirs *)0)->b));                                            \
    } while (0)

TEST(test_structs) {
    SAME_SIZE(struct hec_nvml_pci, nvmlPciInfo_t);
    SAME_FIELD(struct hec_nvml_pci, legacy_bus_id, nvmlPciInfo_t, busIdLegacy);
    SAME_FIELD(struct hec_nvml_pci, bus_id, nvmlPciInfo_t, busId);
    SAME_FIELD(struct hec_nvml_pci, subsystem_id, nvmlPciInfo_t, pciSubSystemId);

    SAME_SIZE(struct hec_nvml_memory_v1, nvmlMemory_t);
    SAME_FIELD(struct hec_nvml_memory_v1, total, nvmlMemory_t, total);
    SAME_FIELD(struct hec_nvml_memory_v1, used, nvmlMemory_t, used);
    SAME_SIZE(struct hec_nvml_memory_v2, nvmlMemory_v2_t);
    SAME_FIELD(struct hec_nvml_memory_v2, total, nvmlMemory_v2_t, total);
    SAME_FIELD(struct hec_nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
    SAME_FIELD(struct hec_nvml_memory_v2, used, nvmlMemory_v2_t, used);
    assert_int_equal(HEC_NVML_MEMORY_V2, nvmlMemory_v2);

    SAME_SIZE(struct hec_nvml_utilization, nvmlUtilization_t);
    SAME_FIELD(struct hec_nvml_utilization, memory, nvmlUtilization_t, memory);
    SAME_SIZE(union hec_nvml_value, nvmlValue_t);
    SAME_SIZE(struct hec_nvml_sample, nvmlSample_t);
    SAME_FIELD(struct hec_nvml_sample, value, nvmlSample_t, sampleValue);

    SAME_SIZE(struct hec_nvml_field, nvmlFieldValue_t);
    SAME_FIELD(struct hec_nvml_field, id, nvmlFieldValue_t, fieldId);
    SAME_FIELD(struct hec_nvml_field, scope, nvmlFieldValue_t, scopeId);
    SAME_FIELD(struct hec_nvml_field, time_us, nvmlFieldValue_t, timestamp);
    SAME_FIELD(struct hec_nvml_field, latency_us, nvmlFieldValue_t, latencyUsec);
    SAME_FIELD(struct hec_nvml_field, value_type, nvmlFieldValue_t, valueType);
    SAME_FIELD(struct hec_nvml_field, code, nvmlFieldValue_t, nvmlReturn);
    SAME_FIELD(struct hec_nvml_field, value, nvmlFieldValue_t, value);

    SAME_SIZE(struct hec_nvml_process_v1, nvmlProcessInfo_v1_t);
    SAME_FIELD(struct hec_nvml_process_v1, used_bytes, nvmlProcessInfo_v1_t, usedGpuMemory);
    SAME_SIZE(struct hec_nvml_process, nvmlProcessInfo_v2_t);
    SAME_SIZE(struct hec_nvml_process, nvmlProcessInfo_t);
    SAME_FIELD(struct hec_nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
    SAME_FIELD(struct hec_nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
    SAME_FIELD(struct hec_nvml_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);
    SAME_SIZE(struct hec_nvml_process_utilization, nvmlProcessUtilizationSample_t);
    SAME_FIELD(struct hec_nvml_process_utilization, time_us, nvmlProcessUtilizationSample_t, timeStamp);
    SAME_FIELD(struct hec_nvml_process_utilization, sm, nvmlProcessUtilizationSample_t, smUtil);
    SAME_FIELD(struct hec_nvml_process_utilization, decoder, nvmlProcessUtilizationSample_t, decUtil);

    SAME_SIZE(struct hec_nvml_event, nvmlEventData_t);
    SAME_FIELD(struct hec_nvml_event, type, nvmlEventData_t, eventType);
    SAME_FIELD(struct hec_nvml_event, data, nvmlEventData_t, eventData);
    SAME_FIELD(struct hec_nvml_event, compute_instance, nvmlEventData_t, computeInstanceId);
    SAME_SIZE(struct hec_nvml_attributes, nvmlDeviceAttributes_t);
    SAME_FIELD(struct hec_nvml_attributes, sms, nvmlDeviceAttributes_t, multiprocessorCount);
    SAME_FIELD(struct hec_nvml_attributes, gpu_instance_slices, nvmlDeviceAttributes_t, gpuInstanceSliceCount);
    SAME_FIELD(struct hec_nvml_attributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);
    SAME_SIZE(struct hec_nvml_gpm_support, nvmlGpmSupport_t);
    SAME_FIELD(struct hec_nvml_gpm_support, supported, nvmlGpmSupport_t, isSupportedDevice);
    SAME_SIZE(struct hec_nvml_gpm_metric, nvmlGpmMetric_t);
    SAME_FIELD(struct hec_nvml_gpm_metric, id, nvmlGpmMetric_t, metricId);
    SAME_FIELD(struct hec_nvml_gpm_metric, code, nvmlGpmMetric_t, nvmlReturn);
    SAME_FIELD(struct hec_nvml_gpm_metric, value, nvmlGpmMetric_t, value);
    SAME_FIELD(struct hec_nvml_gpm_metric, unit, nvmlGpmMetric_t, metricInfo.unit);
    /* the arrays differ in length on purpose (see nvml.h of ours): everything before them must not */
    SAME_FIELD(struct hec_nvml_gpm_metrics, count, nvmlGpmMetricsGet_t, numMetrics);
    SAME_FIELD(struct hec_nvml_gpm_metrics, sample1, nvmlGpmMetricsGet_t, sample1);
    SAME_FIELD(struct hec_nvml_gpm_metrics, sample2, nvmlGpmMetricsGet_t, sample2);
    assert_int_equal(offsetof(struct hec_nvml_gpm_metrics, metrics), offsetof(nvmlGpmMetricsGet_t, metrics));
}

TEST(test_constants) {
    assert_int_equal(HEC_NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(HEC_NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
    assert_int_equal(HEC_NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
    assert_int_equal(HEC_NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(HEC_NVML_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
    assert_int_equal(HEC_NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(HEC_NVML_LIB_RM_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
    assert_int_equal(HEC_NVML_INVALID_STATE, NVML_ERROR_INVALID_STATE);
    assert_int_equal(HEC_NVML_UNKNOWN, NVML_ERROR_UNKNOWN);

    assert_int_equal(HEC_NVML_SAMPLES_TOTAL_POWER, NVML_TOTAL_POWER_SAMPLES);
    assert_int_equal(HEC_NVML_CLOCK_SM, NVML_CLOCK_SM);
    assert_int_equal(HEC_NVML_CLOCK_MEMORY, NVML_CLOCK_MEM);
    assert_int_equal(HEC_NVML_TEMPERATURE_GPU, NVML_TEMPERATURE_GPU);
    assert_int_equal(HEC_NVML_FIELD_MEMORY_TEMPERATURE, NVML_FI_DEV_MEMORY_TEMP);
    assert_int_equal(HEC_NVML_FIELD_POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT);
    assert_int_equal(HEC_NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
    assert_int_equal(HEC_NVML_TIMEOUT, NVML_ERROR_TIMEOUT);
    assert_int_equal(HEC_NVML_DOUBLE, NVML_VALUE_TYPE_DOUBLE);
    assert_int_equal(HEC_NVML_UNSIGNED, NVML_VALUE_TYPE_UNSIGNED_INT);
    assert_int_equal(HEC_NVML_ULONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
    assert_int_equal(HEC_NVML_ULONGLONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
    assert_int_equal(HEC_NVML_LONGLONG, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
    assert_int_equal(HEC_NVML_INT, NVML_VALUE_TYPE_SIGNED_INT);
    assert_int_equal(HEC_NVML_USHORT, NVML_VALUE_TYPE_UNSIGNED_SHORT);
    assert_int_equal(NVML_GPM_METRICS_GET_VERSION, 1);
    assert_int_equal(NVML_GPM_SUPPORT_VERSION, 1);
}

#else

TEST(test_structs) {
    skip();
}

TEST(test_constants) {
    skip();
}

#endif

TEST(test_codes) {
    assert_string_equal(hec_nvml_code_text(0), "success");
    assert_string_equal(hec_nvml_code_text(-1), "unknown NVML error");
    assert_int_equal(hec_nvml_error(HEC_NVML_SUCCESS), HEC_OK);
    assert_int_equal(hec_nvml_error(HEC_NVML_GPU_IS_LOST), HEC_ERR_LOST);
    assert_int_equal(hec_nvml_error(HEC_NVML_NO_PERMISSION), HEC_ERR_PERMISSION);
    assert_int_equal(hec_nvml_error(HEC_NVML_UNKNOWN), HEC_ERR_FAILED);
}

TEST(test_values) {
    union hec_nvml_value value = {.as_double = 3.6};
    assert_int_equal(hec_nvml_value_integer(&value, HEC_NVML_DOUBLE), 4);
    value.as_double = __builtin_nan("");
    assert_true(hec_nvml_value_integer(&value, HEC_NVML_DOUBLE) < 0);
    value.as_ulonglong = UINT64_MAX;
    assert_true(hec_nvml_value_integer(&value, HEC_NVML_ULONGLONG) < 0);
    value = (union hec_nvml_value){.as_unsigned = 4000000000u};
    assert_int_equal(hec_nvml_value_integer(&value, HEC_NVML_UNSIGNED), 4000000000ll);
    assert_true(hec_nvml_value_integer(&value, 99) < 0);
}

TEST(test_load_failures) {
    struct hec_nvml nvml;
    struct hec_why why;
    assert_int_equal(hec_nvml_load("/nonexistent/libnvidia-ml.so.1", &nvml, &why), HEC_ERR_NOTFOUND);
    assert_non_null(strstr(why.text, "/nonexistent/libnvidia-ml.so.1"));
    assert_null(nvml.library);
    /* a library that is no NVML */
    assert_int_equal(hec_nvml_load("libm.so.6", &nvml, &why), HEC_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "nvmlInit_v2"));
    assert_null(nvml.library);
    hec_nvml_unload(&nvml);
}

/* Run files written before there was model/throttle.def hold NVML's own bits. */
TEST(test_throttle) {
    for (int bit = 0; bit < 64; bit++)
        assert_int_equal(hec_nvml_throttle(1ull << bit), bit <= 8 ? 1 << bit : 0);
    assert_int_equal(hec_nvml_throttle(0x44), HEC_THROTTLED_POWER_CAP | HEC_THROTTLED_HARDWARE_THERMAL);
    assert_true(hec_throttle_has(0x44, HEC_THROTTLE_POWER) && hec_throttle_has(0x44, HEC_THROTTLE_THERMAL));
    assert_false(hec_throttle_has(0x44, HEC_THROTTLE_HARDWARE) || hec_throttle_has(0x44, HEC_THROTTLE_OTHER));
    assert_true(hec_throttle_slowed(0x44) && hec_throttle_slowed(0x80));
    assert_false(hec_throttle_slowed(0x1 | 0x2 | 0x4 | 0x10 | 0x100)); /* idle, set, or as far as power goes */
}
