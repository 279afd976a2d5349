/* The table of known parts: names of drivers find the right row, no two rows claim one name, figures are plausible. */
#include "model/part.h"
#include "unit.h"

TEST(names_find_their_rows) {
    static const char *const cases[][2] = {
        {"NVIDIA H200", "H200_SXM"},
        {"NVIDIA H200 NVL", "H200_NVL"},
        {"NVIDIA H100 80GB HBM3", "H100_SXM"},
        {"NVIDIA H100 PCIe", "H100_PCIE"},
        {"NVIDIA H100 NVL", "H100_NVL"},
        {"NVIDIA A100-SXM4-80GB", "A100_SXM_80GB"},
        {"NVIDIA A100-SXM4-40GB", "A100_SXM_40GB"},
        {"A100-SXM4-40GB", "A100_SXM_40GB"},
        {"NVIDIA A100 80GB PCIe", "A100_PCIE_80GB"},
        {"NVIDIA A100-PCIE-40GB", "A100_PCIE_40GB"},
        {"NVIDIA A10", "A10"},
        {"NVIDIA A40", "A40"},
        {"NVIDIA L4", "L4"},
        {"NVIDIA L40", "L40"},
        {"NVIDIA L40S", "L40S"},
        {"Tesla T4", "T4"},
        {"NVIDIA T4", "T4"},
        {"Tesla V100-SXM2-16GB", "V100_SXM2_16GB"},
        {"Tesla V100-SXM2-32GB", "V100_SXM2_32GB"},
        {"Tesla V100-PCIE-16GB", "V100_PCIE_16GB"},
        {"NVIDIA GH200 480GB", "GH200_96GB"},
        {"NVIDIA B200", "B200"},
        {"NVIDIA GB200", "GB200"},
        {"NVIDIA GeForce RTX 4090", "RTX_4090"},
        {"AMD Instinct MI300X", "MI300X"},
        {"AMD Instinct MI325X", "MI325X"},
        {"Jetson AGX Orin", "AGX_ORIN_64GB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct hec_part *part = hec_part_find(cases[i][0]);
        if (!part)
            fail_msg("%s: no part", cases[i][0]);
        assert_string_equal(part->id, cases[i][1]);
    }
}

TEST(what_is_not_the_part_is_not_found) {
    static const char *const names[] = {"",
                                        "NVIDIA",
                                        "NVIDIA H200 MIG 1g.18gb",
                                        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
                                        "GRID A100-10C",
                                        "NVIDIA A100",
                                        "NVIDIA A10G",
                                        "NVIDIA GeForce RTX 4090 D",
                                        "NVIDIA GeForce RTX 3090 Ti",
                                        "NVIDIA H20",
                                        "Orin (nvgpu)",
                                        "Orin"};
    char endless[300] = "NVIDIA H200 ";
    memset(endless + strlen(endless), 'x', sizeof endless - 1 - strlen(endless));
    assert_null(hec_part_find(endless));
    assert_null(hec_part_find(NULL));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hec_part_find(names[i]))
            fail_msg("\"%s\" found %s", names[i], hec_part_find(names[i])->id);
}

TEST(every_driver_name_finds_its_own_row_only) {
    for (int i = 0; i < hec_part_count(); i++) {
        const struct hec_part *part = hec_part_at(i);
        char names[256];
        assert_true(strlen(part->driver_names) < sizeof names);
        strcpy(names, part->driver_names);
        char *rest = NULL;
        for (char *name = strtok_r(names, "|", &rest); name; name = strtok_r(NULL, "|", &rest))
            assert_ptr_equal(hec_part_find(name), part); /* an earlier row with the same name would answer instead */
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(part->id, hec_part_at(j)->id);
            assert_string_not_equal(part->name, hec_part_at(j)->name);
        }
    }
    assert_null(hec_part_at(-1));
    assert_null(hec_part_at(hec_part_count()));
}

TEST(figures_are_plausible) {
    for (int i = 0; i < hec_part_count(); i++) {
        const struct hec_part *part = hec_part_at(i);
        const double *peak = part->peak_tflops;
        assert_true(isnan(part->memory_gb_per_s) || (part->memory_gb_per_s >= 50 && part->memory_gb_per_s <= 10000));
        assert_true(part->memory_gb >= 8 && part->memory_gb <= 300);
        assert_true(part->tdp_w >= 15 && part->tdp_w <= 1500);
        assert_true(strlen(part->source) > 10 && strstr(part->source, "20"));
        assert_true(peak[HEC_PRECISION_FP32] > 1);
        for (int p = 0; p < HEC_PRECISION_COUNT; p++)
            assert_true(isnan(peak[p]) || peak[p] >= 0);
        /* each step down in width at least keeps, and at most doubles or so, the rate of the tensor pipes; a figure
         * with sparsity left in by mistake would break this */
        static const enum hec_precision chain[] = {HEC_PRECISION_TF32, HEC_PRECISION_FP16, HEC_PRECISION_FP8,
                                                   HEC_PRECISION_FP4};
        for (int c = 0; c + 1 < 4; c++) {
            double wide = peak[chain[c]], narrow = peak[chain[c + 1]];
            /* GeForce: fp8 runs at half rate with 32-bit accumulation, fp4 does not */
            double most = part->workload == HEC_PART_WORKSTATION && chain[c] == HEC_PRECISION_FP8 ? 4.1 : 2.1;
            if (wide > 0 && narrow > 0)
                assert_true(narrow >= 1.9 * wide && narrow <= most * wide);
        }
        if (peak[HEC_PRECISION_FP16] > 0)
            assert_true(peak[HEC_PRECISION_FP16] >= 1.9 * peak[HEC_PRECISION_FP32]);
        if (peak[HEC_PRECISION_TF32] > 0)
            assert_true(peak[HEC_PRECISION_TF32] >= peak[HEC_PRECISION_FP32]);
        if (peak[HEC_PRECISION_FP64] > 0)
            assert_true(peak[HEC_PRECISION_FP64] <= peak[HEC_PRECISION_FP32]);
        if (peak[HEC_PRECISION_FP64_TENSOR] > 0)
            assert_true(peak[HEC_PRECISION_FP64_TENSOR] >= peak[HEC_PRECISION_FP64]);
        double vector = hec_part_flop_per_joule(part, HEC_PRECISION_FP32);
        assert_true(vector >= 2e10 && vector <= 5e11); /* T4 to L4: 0.05 to 0.42 TFLOP per joule */
        double tensor = hec_part_flop_per_joule(part, HEC_PRECISION_FP16);
        assert_true(isnan(tensor) || (tensor >= 1e11 && tensor <= 4e12));
    }
}

TEST(links) {
    assert_true(hec_part_link_bytes_per_s(hec_part_find("NVIDIA H200")) == 450e9);
    assert_true(isnan(hec_part_link_bytes_per_s(hec_part_find("NVIDIA H100 PCIe"))));
    assert_true(isnan(hec_part_link_bytes_per_s(NULL)));
    int linked = 0;
    for (int i = 0; i < hec_part_count(); i++) {
        double link = hec_part_link_bytes_per_s(hec_part_at(i));
        assert_true(isnan(link) || (link >= 150e9 && link <= 1000e9));
        linked += isfinite(link);
    }
    assert_int_equal(linked, 8); /* each row of a link is of a part that there is */
}

TEST(flop_per_joule_is_peak_over_power) {
    const struct hec_part *h200 = hec_part_find("NVIDIA H200");
    assert_true(fabs(hec_part_flop_per_joule(h200, HEC_PRECISION_FP16) - 989.5e12 / 700) < 1);
    assert_true(hec_part_flop_per_joule(h200, HEC_PRECISION_FP4) == 0); /* no such unit */
    const struct hec_part *t4 = hec_part_find("Tesla T4");
    assert_true(isnan(hec_part_flop_per_joule(t4, HEC_PRECISION_FP64))); /* unknown stays unknown */
}

/* NVIDIA's data sheets: boost clocks. */
TEST(the_clock_of_the_peak) {
    static const struct {
        const char *name;
        int major, minor;
        double mhz;
    } rows[] = {{"Tesla V100-SXM2-32GB", 7, 0, 1530},  {"Tesla T4", 7, 5, 1590},
                {"NVIDIA A100-SXM4-80GB", 8, 0, 1410}, {"NVIDIA H100 80GB HBM3", 9, 0, 1830},
                {"NVIDIA H200", 9, 0, 1830},           {"NVIDIA L40S", 8, 9, 2490}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(fabs(hec_part_peak_mhz(hec_part_find(rows[i].name), rows[i].major, rows[i].minor) - rows[i].mhz) <
                    10);
    assert_true(isnan(hec_part_peak_mhz(hec_part_find("NVIDIA H200"), 99, 0)));
}

/* What users must find: a training, an inference and an edge class, and in each of these rows what a comparison of a
 * measured run needs. */
TEST(the_classes_are_there) {
    static const char *const names[] = {"Tesla V100-SXM2-32GB",  "Tesla T4",       "NVIDIA A100-SXM4-80GB",
                                        "NVIDIA H100 80GB HBM3", "NVIDIA H200",    "NVIDIA B200",
                                        "NVIDIA L40S",           "AMD MI300X",     "AMD MI325X",
                                        "Jetson AGX Orin",       "Jetson Orin NX", "Jetson Orin Nano"};
    int by_class[HEC_PART_CLASS_COUNT] = {0};
    for (int i = 0; i < hec_part_count(); i++)
        by_class[hec_part_at(i)->workload]++;
    for (int c = 0; c < HEC_PART_CLASS_COUNT; c++)
        assert_true(by_class[c] > 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct hec_part *part = hec_part_find(names[i]);
        assert_non_null(part);
        if (part->workload == HEC_PART_EDGE) /* their documents print no dense FP16 peak */
            continue;
        assert_true(isfinite(hec_part_flop_per_joule(part, HEC_PRECISION_FP16)));
        assert_true(isfinite(part->memory_gb_per_s));
    }
}
