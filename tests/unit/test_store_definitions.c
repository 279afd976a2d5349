/* What activities refer to, before it is in a file: ids, what makes an entry, what each transaction takes and what becomes of it. */
#include "store/definitions.h"
#include "model/run.h"
#include "unit.h"

static struct hec_definitions d;
static struct hec_definition_batch batch;

static int begin(void **state) {
    (void)state;
    hec_definitions_init(&d);
    return 0;
}
static int end(void **state) {
    (void)state;
    hec_definitions_free(&d);
    return 0;
}
EACH_TEST(begin, end)

static void take(uint32_t names, uint32_t tracks, uint32_t kernels, uint32_t frames) {
    assert_true(hec_definitions_take(&d, &batch));
    assert_int_equal(batch.name_count, names);
    assert_int_equal(batch.track_count, tracks);
    assert_int_equal(batch.kernel_count, kernels);
    assert_int_equal(batch.frame_count, frames);
    assert_true(!batch.names == !names && !batch.tracks == !tracks && !batch.kernels == !kernels &&
                !batch.frames == !frames);
}

static void give_back(bool done) {
    static const struct hec_definition_batch empty;
    hec_definitions_give_back(&d, &batch, done);
    assert_memory_equal(&batch, &empty, sizeof batch);
}

TEST(names) {
    static const struct {
        const char *text;
        size_t length;
        uint32_t id;
    } cases[] = {{"abc", 3, 1},  {"ab", 2, 2},   {"abd", 3, 3}, {"", 0, 4},  {"abc", 3, 1},
                 {"abcd", 3, 1}, {"abcd", 4, 5}, {"ab", 2, 2},  {"x", 0, 4}, {"b", 1, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(hec_definitions_name(&d, cases[i].text, cases[i].length), cases[i].id);
    assert_int_equal(d.text_bytes, 3 + 2 + 3 + 0 + 4 + 1); /* of each once */
    static const char *const texts[] = {"abc", "ab", "abd", "", "abcd", "b"};
    take(6, 0, 0, 0);
    assert_int_equal(batch.name_first, 1);
    for (int i = 0; i < 6; i++)
        assert_string_equal(batch.names[i], texts[i]);
    give_back(true);
    take(0, 0, 0, 0);
    give_back(true);
    assert_int_equal(hec_definitions_name(&d, "later", 5), 7);
    for (int i = 0; i < 2; i++) { /* not written: taken again */
        take(1, 0, 0, 0);
        assert_int_equal(batch.name_first, 7);
        assert_string_equal(batch.names[0], "later");
        give_back(i == 1);
    }
    take(0, 0, 0, 0);
    give_back(true);
    assert_int_equal(hec_definitions_refused(&d), 0);
}

/* Ids stay while tables grow, and each is found again. */
TEST(many) {
    enum { MANY = 1000 };
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 1; i <= MANY; i++) {
            char text[16];
            int length = snprintf(text, sizeof text, "%u", i);
            assert_int_equal(hec_definitions_name(&d, text, (size_t)length), i);
            struct hec_kernel kernel = {.id = 5, .name = i, .grid = {i, 1, 1}, .registers = 7};
            assert_int_equal(hec_definitions_kernel(&d, &kernel), i);
            struct hec_frame frame = {.id = 5, .parent = i - 1, .file = 1, .function = i, .line = 3};
            assert_int_equal(hec_definitions_frame(&d, &frame), i);
            struct hec_track track = {.id = 5, .kind = HEC_TRACK_STREAM, .pid = 9, .stream = i};
            assert_int_equal(hec_definitions_track(&d, &track), i);
        }
    take(MANY, MANY, MANY, MANY);
    for (uint32_t i = 1; i <= MANY; i++) {
        assert_int_equal(atoi(batch.names[i - 1]), i);
        assert_true(batch.kernels[i - 1].id == i && batch.kernels[i - 1].grid[0] == i);
        assert_true(batch.frames[i - 1].id == i && batch.frames[i - 1].function == i);
        assert_true(batch.tracks[i - 1].id == i && batch.tracks[i - 1].stream == i);
    }
    give_back(false);
    assert_int_equal(d.names.stored + d.tracks.stored + d.kernels.stored + d.frames.stored, 0);
    take(MANY, MANY, MANY, MANY);
    give_back(true);
    assert_true(d.names.stored == MANY && d.tracks.stored == MANY && d.kernels.stored == MANY &&
                d.frames.stored == MANY);
    assert_int_equal(hec_definitions_kernel(&d, &(struct hec_kernel){.name = 2}), MANY + 1);
    assert_int_equal(hec_definitions_frame(&d, &(struct hec_frame){.parent = MANY, .line = 4}), MANY + 1);
    take(0, 0, 1, 1);
    assert_true(batch.kernels[0].id == MANY + 1 && batch.frames[0].id == MANY + 1 && batch.frames[0].parent == MANY);
    give_back(true);
    assert_int_equal(hec_definitions_refused(&d), 0);
}

/* Each field makes another track but the name, and what is not known is -1. */
TEST(tracks) {
    struct hec_track track = {.kind = HEC_TRACK_STREAM, .pid = 1, .rank = 2, .device = 3, .context = 4, .stream = 5};
    struct hec_track others[] = {track, track, track, track, track, track};
    others[0].kind = HEC_TRACK_THREAD;
    others[1].pid = 7;
    others[2].rank = 0;
    others[3].device = HEC_DEVICE_MAX - 1;
    others[4].context = 0;
    others[5].stream = -5;
    assert_int_equal(hec_definitions_track(&d, &track), 1);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(hec_definitions_track(&d, &others[i]), 2 + i);
    track.rank = track.device = -7;
    assert_int_equal(hec_definitions_track(&d, &track), 8);
    track.rank = track.device = -1;
    assert_int_equal(hec_definitions_track(&d, &track), 8);
    memset(track.name, 'n', sizeof track.name); /* of any length */
    track.stream = 6;
    assert_int_equal(hec_definitions_track(&d, &track), 9);
    take(0, 9, 0, 0);
    assert_true(batch.tracks[7].rank == -1 && batch.tracks[7].device == -1);
    assert_int_equal(batch.tracks[3].rank, 0);
    assert_int_equal(batch.tracks[4].device, HEC_DEVICE_MAX - 1);
    assert_int_equal(strlen(batch.tracks[8].name), sizeof track.name - 1);
    give_back(true);
    track.kind = HEC_TRACK_KIND_COUNT;
    assert_int_equal(hec_definitions_track(&d, &track), 0);
    track.kind = HEC_TRACK_STREAM;
    track.device = HEC_DEVICE_MAX;
    assert_int_equal(hec_definitions_track(&d, &track), 0);
    assert_int_equal(hec_definitions_refused(&d), 2);
    take(0, 0, 0, 0);
    give_back(true);
}

/* A name that comes later goes to the file with the next transaction that succeeds, and each once. */
TEST(names_of_tracks) {
    struct hec_track tracks[3];
    for (int i = 0; i < 3; i++) {
        tracks[i] = (struct hec_track){.kind = HEC_TRACK_THREAD, .stream = i};
        snprintf(tracks[i].name, sizeof tracks[i].name, "first %d", i);
        assert_int_equal(hec_definitions_track(&d, &tracks[i]), i + 1);
    }
    take(0, 3, 0, 0);
    assert_int_equal(batch.tracks_end, 3);
    give_back(true);
    strcpy(tracks[1].name, "second");
    hec_definitions_track(&d, &tracks[1]);
    hec_definitions_track(&d, &tracks[0]);
    hec_definitions_track(&d, &(struct hec_track){.kind = HEC_TRACK_THREAD, .stream = 3, .name = "new"});
    for (int round = 0; round < 3; round++) {
        take(0, 2, 0, 0);
        assert_int_equal(batch.tracks_end, 4);
        assert_true(batch.tracks[0].id == 2 && batch.tracks[1].id == 4);
        assert_string_equal(batch.tracks[0].name, round < 2 ? "second" : "third");
        assert_string_equal(batch.tracks[1].name, "new");
        if (round == 1) { /* renamed while it was written */
            strcpy(tracks[1].name, "third");
            hec_definitions_track(&d, &tracks[1]);
        }
        give_back(round == 2);
    }
    take(0, 0, 0, 0);
    assert_int_equal(batch.tracks_end, 4);
    give_back(true);
    strcpy(tracks[2].name, "last");
    take(0, 0, 0, 0);
    hec_definitions_track(&d, &tracks[2]); /* renamed while another transaction succeeds */
    give_back(true);
    take(0, 1, 0, 0);
    assert_true(batch.tracks[0].id == 3 && strcmp(batch.tracks[0].name, "last") == 0);
    give_back(true);
    take(0, 0, 0, 0);
    give_back(true);
    assert_int_equal(d.tracks.stored, 4);
}

/* Each field makes another kernel, and what is not known is -1, however it was said. */
TEST(kernels) {
    struct hec_kernel kernel = {0, 1, {1, 2, 3}, {4, 5, 6}, 7, 8, 9}, others[10];
    hec_definitions_name(&d, "a", 1);
    hec_definitions_name(&d, "b", 1);
    assert_int_equal(hec_definitions_kernel(&d, &kernel), 1);
    for (uint32_t i = 0; i < 10; i++) {
        others[i] = kernel;
        if (i < 6)
            *(i < 3 ? &others[i].grid[i] : &others[i].grid[0]) = i < 3 ? 0 : 1;
        if (i >= 3 && i < 6)
            others[i].block[i - 3] = 0;
    }
    others[6].name = 2;
    others[7].registers = 0;
    others[8].static_shared_bytes = 0;
    others[9].dynamic_shared_bytes = 0;
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(hec_definitions_kernel(&d, &others[i]), 2 + i);
    struct hec_kernel unknown = {0, 1, {-2, -3, -4}, {-5, -6, -7}, -8, -9, -10};
    assert_int_equal(hec_definitions_kernel(&d, &unknown), 12);
    unknown = (struct hec_kernel){0, 1, {-1, -1, -1}, {-1, -1, -1}, -1, -1, -1};
    assert_int_equal(hec_definitions_kernel(&d, &unknown), 12);
    take(2, 0, 12, 0);
    unknown.id = 12;
    assert_memory_equal(&batch.kernels[11], &unknown, sizeof unknown);
    for (uint32_t i = 0; i < 10; i++) {
        others[i].id = 2 + i;
        assert_memory_equal(&batch.kernels[1 + i], &others[i], sizeof others[i]);
    }
    give_back(true);
    kernel.name = 0; /* a name for which there was no room */
    assert_int_equal(hec_definitions_kernel(&d, &kernel), 13);
    kernel.name = 3;
    assert_int_equal(hec_definitions_kernel(&d, &kernel), 0);
    assert_int_equal(hec_definitions_refused(&d), 1);
}

TEST(frames_refer_to_what_is_there) {
    static const struct {
        struct hec_frame frame;
        uint32_t id;
    } cases[] = {{{0, 0, 1, 2, 5}, 1}, {{0, 1, 2, 2, 5}, 2}, {{0, 1, 2, 2, 6}, 3}, {{0, 0, 2, 2, 5}, 4},
                 {{0, 0, 1, 1, 5}, 5}, {{0, 0, 1, 2, 5}, 1}, {{0, 6, 1, 2, 5}, 0}, {{0, 0, 3, 2, 5}, 0},
                 {{0, 0, 1, 3, 5}, 0}, {{0, 5, 0, 0, 0}, 6}};
    hec_definitions_name(&d, "a", 1);
    hec_definitions_name(&d, "b", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(hec_definitions_frame(&d, &cases[i].frame), cases[i].id);
    assert_int_equal(hec_definitions_refused(&d), 3);
    hec_definitions_kernel(&d, &(struct hec_kernel){.name = 1});
    hec_definitions_track(&d, &(struct hec_track){.stream = 1});
    hec_definitions_track(&d, &(struct hec_track){.stream = 2});
    hec_definitions_track(&d, &(struct hec_track){.stream = 3});
    struct hec_activity_limits limits;
    hec_definitions_limits(&d, &limits);
    assert_int_equal(limits.tracks, 3);
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        assert_int_equal(limits.name[kind], kind == HEC_ACTIVITY_KERNEL ? 1 : kind == HEC_ACTIVITY_STACK ? 6 : 2);
}

/* Texts of all names together have a bound, which one more byte is beyond. */
TEST(texts_end) {
    static char text[HEC_DEFINITIONS_TEXT_MAX];
    memset(text, 'x', sizeof text);
    assert_int_equal(hec_definitions_name(&d, text, sizeof text - 2), 1);
    assert_int_equal(hec_definitions_name(&d, text, 3), 0);
    assert_int_equal(hec_definitions_name(&d, text, 2), 2);
    assert_int_equal(hec_definitions_name(&d, "", 0), 3);
    assert_int_equal(hec_definitions_name(&d, text, 1), 0);
    assert_int_equal(hec_definitions_name(&d, text, 2), 2);
    assert_int_equal(hec_definitions_refused(&d), 2);
    take(3, 0, 0, 0);
    assert_int_equal(strlen(batch.names[0]), sizeof text - 2);
    give_back(true);
}
