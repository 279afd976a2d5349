/* The grammar of `hec run --sim`, and who sees which device. */
#include "sim/ids.h"
#include "unit.h"

static struct sim_spec good(const char *text) {
    struct sim_spec spec;
    struct hec_why why = {""};
    if (sim_spec_parse(text, &spec, &why) != HEC_OK)
        fail_msg("'%s': %s", text, why.text);
    return spec;
}

TEST(accepts) {
    struct sim_spec spec = good("h200");
    assert_string_equal(spec.profile, "h200");
    assert_int_equal(spec.count, 1);
    assert_int_equal(spec.driver, 580);
    assert_int_equal(spec.fault_count, 0);
    assert_string_equal(sim_spec_library(&spec), "sim/libnvidia-ml.so.1");
    spec = good("a100x8,noise=2.5,nopower,mig=1,driver=450,clock=virtual,cap=300");
    assert_string_equal(spec.profile, "a100");
    assert_int_equal(spec.count, 8);
    assert_int_equal(spec.noise_mw, 2500);
    assert_true(spec.no_power && spec.mig && spec.virtual_time);
    assert_int_equal(spec.cap_mw, 300000);
    spec = good("h200x2,outside=450.5,norights,state=/tmp/a b@1=x");
    assert_int_equal(spec.outside_mw, 450500);
    assert_true(spec.no_rights);
    assert_string_equal(spec.state, "/tmp/a b@1=x");
    spec = good("h200,sensor=100:12.5,lose=20");
    assert_int_equal(spec.sensor_window_ns, 100000000);
    assert_int_equal(spec.sensor_lag_ns, 12500000);
    assert_int_equal(spec.lose, 20);
    spec = good("h200,mig=3g+2g+1g+1g");
    assert_int_equal(spec.mig, 4);
    assert_int_equal(spec.mig_slices[0], 3);
    assert_int_equal(spec.mig_slices[3], 1);
    assert_int_equal(good("h200,mig=0").mig, 0);
    spec = good("h200,mig=1,nomig@2-5:1");
    assert_int_equal(spec.faults[0].kind, SIM_FAULT_NOMIG);
    assert_int_equal(spec.faults[0].device, 1);
    assert_int_equal(spec.faults[0].until_ns, INT64_C(5000000000));
    spec = good("a100x8,nopower,mig=1,driver=450");
    assert_string_equal(sim_spec_library(&spec), "sim/old/libnvidia-ml.so.1");
    spec = good("h200x4,lost@2,reset@1.5:3,slow=nvmlDeviceGetTotalEnergyConsumption:200,"
                "hang=nvmlDeviceGetPowerUsage@4,fail=nvmlInit_v2");
    assert_int_equal(spec.fault_count, 5);
    assert_int_equal(spec.faults[0].kind, SIM_FAULT_LOST);
    assert_int_equal(spec.faults[0].at_ns, 2000000000);
    assert_int_equal(spec.faults[0].device, 0);
    assert_int_equal(spec.faults[1].kind, SIM_FAULT_RESET);
    assert_int_equal(spec.faults[1].at_ns, 1500000000);
    assert_int_equal(spec.faults[1].device, 3);
    assert_int_equal(spec.faults[2].call, SIM_CALL_nvmlDeviceGetTotalEnergyConsumption);
    assert_int_equal(spec.faults[2].delay_ns, 200000000);
    assert_int_equal(spec.faults[3].kind, SIM_FAULT_HANG);
    assert_int_equal(spec.faults[3].at_ns, 4000000000);
    assert_int_equal(spec.faults[4].call, SIM_CALL_nvmlInit_v2);
    assert_int_equal(spec.faults[4].until_ns, INT64_MAX);
    spec = good("h200x4,lost@2-5.5:3,fail=nvmlInit_v2@3-4");
    assert_int_equal(spec.faults[0].at_ns, 2000000000);
    assert_int_equal(spec.faults[0].until_ns, 5500000000);
    assert_int_equal(spec.faults[0].device, 3);
    assert_int_equal(spec.faults[1].until_ns, 4000000000);
    spec = good("h200x4,xid=79@1.5:3");
    assert_int_equal(spec.faults[0].kind, SIM_FAULT_XID);
    assert_int_equal(spec.faults[0].xid, 79);
    assert_int_equal(spec.faults[0].at_ns, 1500000000);
    assert_int_equal(spec.faults[0].device, 3);
}

TEST(accepts_what_concerns_tracing) {
    struct sim_spec spec = good("h200");
    assert_int_equal(spec.trace.cupti, 130);
    assert_string_equal(sim_spec_cupti_folder(&spec), "sim/cupti-13");
    assert_int_equal(spec.trace.cost_ns, SIM_TRACE_COST_NS);
    spec = good("h200,cupti=11.8,badrecord=start,badrecord=truncated:3,nobuffer=7,slowflush=20,tracecost=0,"
                "cuptiskew=200:5000,holder=nsys:1.5");
    assert_string_equal(sim_spec_cupti_folder(&spec), "sim/cupti-11.8");
    assert_int_equal(spec.trace.bad[SIM_BAD_START], 100);
    assert_int_equal(spec.trace.bad[SIM_BAD_TRUNCATED], 3);
    assert_int_equal(spec.trace.bad[SIM_BAD_KIND], 0);
    assert_int_equal(spec.trace.no_buffer, 7);
    assert_int_equal(spec.trace.slow_flush_ns, 20000000);
    assert_int_equal(spec.trace.cost_ns, 0);
    assert_int_equal(spec.trace.skew_ppm, 200);
    assert_int_equal(spec.trace.offset_ns, 5000000000);
    assert_string_equal(spec.trace.holder, "nsys");
    assert_int_equal(spec.trace.holder_until_ns, 1500000000);
    spec = good("h200,cupti=12");
    assert_string_equal(sim_spec_cupti_folder(&spec), "sim/cupti-12");
    spec = good("h200,cupti=none");
    assert_null(sim_spec_cupti_folder(&spec));
}

/* What is wrong, and a word that the sentence must hold to be of help. */
TEST(refuses_with_a_sentence) {
    static const char *const wrong[][2] = {
        {"", "h200"},
        {"b300", "a100"},
        {"h200x0", "1 to 16"},
        {"h200x17", "1 to 16"},
        {"h200x1.5", "1 to 16"},
        {"h200x", "1 to 16"},
        {"h200,", "known are"},
        {"h200,speed=3", "known are"},
        {"h200,lost", "lost@S"},
        {"h200,lost=2", "lost@S"},
        {"h200,lost@", "lost@SECONDS"},
        {"h200,lost@-1", "lost@SECONDS"},
        {"h200,lost@2-1", "lost@SECONDS"},
        {"h200,reset@1-2", "reset@SECONDS"},
        {"h200,xid=79", "xid=NUMBER@SECONDS"},
        {"h200,xid=0@1", "xid=NUMBER@SECONDS"},
        {"h200,xid=1.5@1", "xid=NUMBER@SECONDS"},
        {"h200,xid=79@1-2", "xid=79@SECONDS"},
        {"h200,xid=79@1:1", "xid=79@SECONDS:DEVICE"},
        {"h200,lost@nan", "lost@SECONDS"},
        {"h200,lost@1e3", "lost@SECONDS"},
        {"h200,lost@0x10", "lost@SECONDS"},
        {"h200,lost@1:1", "lost@SECONDS:DEVICE"},
        {"h200,slow=nvmlDeviceGetPowerUsage", "FUNCTION:MILLISECONDS"},
        {"h200,slow=nvmlDeviceGetPowerUsage:x", "FUNCTION:MILLISECONDS"},
        {"h200,slow=nvmlDeviceGetPowerUsage:60001", "60000"},
        {"h200,hang=nvmlDeviceGetPowerUsage:5", "hang=FUNCTION"},
        {"h200,fail=nvmlBrew", "no function 'nvmlBrew'"},
        {"h200,fail=nvmlInit_v2@soon", "seconds"},
        {"h200,noise=loud", "watts"},
        {"h200,cap=100", "200 to 700"},
        {"h200,cap=701", "700"},
        {"h200,outside=100", "outside=100: the h200 takes 200 to 700"},
        {"h200,state=here", "absolute"},
        {"h200,state=", "absolute"},
        {"h200,norights=1", "is not known"},
        {"h200,driver=1", "450 and 580"},
        {"h200,mig=2", "mig=1"},
        {"h200,mig=5g", "3g+2g+1g"},
        {"h200,mig=3g+", "3g+2g+1g"},
        {"h200,mig=1,nomig@1:7", "nomig@SECONDS:DEVICE"},
        {"h200,mig=3g2g", "3g+2g+1g"},
        {"h200,mig=3g+3g+1g", "8 of memory"},
        {"h200,mig=4g+4g", "7 slices"},
        {"h200,clock=sand", "clock=virtual"},
        {"p100,mig=1", "divided"},
        {"h200,cupti=14", "11.8, 12, 13 and none"},
        {"h200,badrecord=ugly", "truncated"},
        {"h200,badrecord=start:0", "badrecord=KIND:N"},
        {"h200,nobuffer=0", "nobuffer"},
        {"h200,slowflush=-1", "slowflush"},
        {"h200,cuptiskew=fast", "PPM:MILLISECONDS"},
        {"h200,holder=", "NAME:SECONDS"},
        {"h200,tracecost=x", "tracecost"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct sim_spec spec;
        struct hec_why why = {""};
        assert_int_equal(sim_spec_parse(wrong[i][0], &spec, &why), HEC_ERR_USAGE);
        if (!strstr(why.text, wrong[i][1]))
            fail_msg("'%s' gave '%s', which lacks '%s'", wrong[i][0], why.text, wrong[i][1]);
        assert_null(strchr(why.text, '\n'));
        assert_int_equal(sim_spec_parse(wrong[i][0], &spec, NULL), HEC_ERR_USAGE);
    }
    char text[2000] = "h200";
    for (int i = 0; i < 17; i++)
        strcat(text, ",lost@1");
    struct sim_spec spec;
    struct hec_why why;
    assert_int_equal(sim_spec_parse(text, &spec, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "16 faults"));
    memset(text, 'h', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(sim_spec_parse(text, &spec, &why), HEC_ERR_USAGE);
}

/* Whatever is typed, the result is a usable specification or an error. */
TEST(survives_garbage) {
    static const char *const words[] = {"h200",   "a100",  "x",    "8",    ",", "=",           "@",     ":",
                                        "lost",   "reset", "slow", "hang", ".", "nvmlInit_v2", "noise", "nopower",
                                        "driver", "450",   "mig",  "1",    "-", "\xff",        "%s%n",  "e9"};
    int accepted = 0;
    for (uint64_t round = 1; round <= 50000; round++) {
        char text[256] = "";
        if (round % 2) /* half of them start well */
            strcpy(text, "h200x8,");
        for (uint64_t i = 0; i < 1 + round % 9; i++)
            strcat(text, words[(size_t)(sim_hash_unit(round, i, 9) * (double)(sizeof words / sizeof words[0]))]);
        struct sim_spec spec;
        struct hec_why why = {""};
        if (sim_spec_parse(text, &spec, &why) == HEC_OK) {
            accepted++;
            assert_non_null(sim_profile_find(spec.profile));
            assert_in_range(spec.count, 1, SIM_DEVICE_MAX);
            assert_in_range(spec.fault_count, 0, SIM_FAULT_MAX);
        } else {
            assert_true(why.text[0] != '\0');
        }
    }
    assert_true(accepted > 0);
}

static int visible(const char *spec_text, const char *list, int ordinal) {
    struct sim_spec spec = good(spec_text);
    int device, instance;
    int err = sim_visible_device(&spec, list, ordinal, &device, &instance, NULL);
    return err ? err : device * 10 + instance;
}

TEST(honours_cuda_visible_devices) {
    char uuid[SIM_UUID_SIZE], mig[SIM_UUID_SIZE], list[200];
    assert_int_equal(visible("h200x4", NULL, 3), 30);
    assert_int_equal(visible("h200x4", NULL, 4), HEC_ERR_NOTFOUND);
    assert_int_equal(visible("h200x4", NULL, -1), HEC_ERR_NOTFOUND);
    assert_int_equal(visible("h200x4", "2,0", 0), 20);
    assert_int_equal(visible("h200x4", " 2 , 0 ", 1), 0);
    assert_int_equal(visible("h200x4", "2,0", 2), HEC_ERR_NOTFOUND);
    assert_int_equal(visible("h200x4", "", 0), HEC_ERR_NOTFOUND);
    assert_int_equal(visible("h200x4", "1,9,0", 1), HEC_ERR_NOTFOUND); /* the list ends at 9 */
    assert_int_equal(visible("h200x4", "-1,0", 0), HEC_ERR_NOTFOUND);
    assert_int_equal(visible("h200x4", "NoDevFiles", 0), HEC_ERR_NOTFOUND);
    sim_uuid(3, uuid);
    snprintf(list, sizeof list, "0,%s", uuid);
    assert_int_equal(visible("h200x4", list, 1), 30);
    uuid[12] = '\0'; /* a beginning will do */
    assert_int_equal(visible("h200x4", uuid, 0), 30);
    sim_mig_uuid(0, 1, mig);
    assert_int_equal(visible("h200x4,mig=1", mig, 0), 1);
    assert_int_equal(visible("h200x4", mig, 0), HEC_ERR_NOTFOUND);
}
