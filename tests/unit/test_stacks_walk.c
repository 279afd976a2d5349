/* Threads, frames and their names from the memory of a made interpreter, as each version lays them out; and what is torn. */
#include "python_image.h"

#include "observe/stacks/names.h"

#define MAIN 0x7000

static struct {
    struct hec_frame frame[256];
    char name[64][256];
    uint32_t frames, names;
} kept;

static uint32_t keep_name(void *context, const char *text) {
    (void)context;
    for (uint32_t i = 1; i <= kept.names; i++)
        if (strcmp(kept.name[i], text) == 0)
            return i;
    if (kept.names == 63)
        return 0;
    snprintf(kept.name[++kept.names], sizeof kept.name[0], "%s", text);
    return kept.names;
}

static uint32_t keep_frame(void *context, const struct hec_frame *frame) {
    (void)context;
    if (kept.frames == 255)
        return 0;
    assert_true(frame->parent <= kept.frames && frame->file <= kept.names && frame->function <= kept.names);
    kept.frame[++kept.frames] = *frame;
    return kept.frames;
}

static const struct hec_sink sink = {.trace_name = keep_name, .trace_frame = keep_frame};

struct reader {
    struct image image;
    struct hec_memory memory;
    struct hec_python_scratch scratch;
    struct hec_python_names names;
    struct hec_python_stack stack;
    struct hec_python_named named;
};

static struct reader *begin(int minor) {
    struct reader *r = test_calloc(1, sizeof *r);
    memset(&kept, 0, sizeof kept);
    image_begin(&r->image, minor, MAIN);
    r->memory = image_memory(&r->image);
    r->names.sink = &sink;
    return r;
}

static void end(struct reader *r) {
    hec_python_names_free(&r->names);
    hec_python_stack_free(&r->stack);
    hec_python_named_free(&r->named);
    test_free(r);
}

/* What the sampler does: the leaf, or an error; 0: nothing to tell. */
static int64_t read_stack(struct reader *r, const struct hec_python_thread *thread) {
    int same;
    uint32_t leaf;
    int err = hec_python_walk(&r->image.python, &r->memory, thread, &r->scratch, &r->stack, &same);
    if (err >= 0)
        err = hec_python_name(&r->names, &r->image.python, &r->memory, &r->scratch, &r->stack, same, &r->named, &leaf);
    return err < 0 ? err : (int64_t)leaf;
}

static struct hec_python_thread first_thread(struct reader *r) {
    struct hec_python_thread thread;
    assert_int_equal(hec_python_threads(&r->image.python, &r->memory, &r->scratch, NULL, 0, &thread, 1), 1);
    return thread;
}

/* "inner (b.py:12) < main (a.py:5)" */
static void assert_stack(int64_t leaf, const char *expected) {
    char text[1024] = "";
    assert_true(leaf > 0);
    for (uint32_t at = (uint32_t)leaf; at; at = kept.frame[at].parent)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s (%s:%d)", text[0] ? " < " : "",
                 kept.name[kept.frame[at].function], kept.name[kept.frame[at].file], kept.frame[at].line);
    assert_string_equal(text, expected);
}

#define EACH_VERSION for (int minor = HEC_PYTHON_MINOR_FIRST; minor <= HEC_PYTHON_MINOR_LAST; minor++)

TEST(frames_and_lines_of_every_version) {
    EACH_VERSION {
        struct reader *r = begin(minor);
        uint64_t outer = image_code(&r->image, "a.py", "main", 5), inner = image_code(&r->image, "b.py", "inner", 10);
        uint64_t frame = image_c_frame(&r->image, image_frame(&r->image, outer, 4, 0));
        uint64_t thread = image_thread(&r->image, MAIN, 77, image_frame(&r->image, inner, 12, frame));
        struct hec_python_thread found = first_thread(r);
        assert_int_equal(found.state, thread);
        assert_int_equal(found.id, MAIN);
        assert_int_equal(found.native_id, minor >= 11 ? 77 : 0);
        assert_int_equal(found.main, minor < 13);
        assert_stack(read_stack(r, &found), "inner (b.py:12) < main (a.py:5)");
        int64_t leaf = read_stack(r, &found);
        assert_stack(leaf, "inner (b.py:12) < main (a.py:5)");
        /* another call from the same frame: what is below is known */
        uint32_t frames = kept.frames;
        image_top(&r->image, thread, image_frame(&r->image, inner, 2, frame));
        assert_stack(read_stack(r, &found), "inner (b.py:10) < main (a.py:5)");
        assert_int_equal(kept.frames, frames + 1);
        /* before its first instruction */
        image_top(&r->image, thread, image_frame(&r->image, inner, -2, frame));
        assert_stack(read_stack(r, &found), "inner (b.py:10) < main (a.py:5)");
        end(r);
    }
}

TEST(all_threads_and_a_thread_that_ended) {
    EACH_VERSION {
        struct reader *r = begin(minor);
        struct hec_python_thread found[4];
        uint64_t code = image_code(&r->image, "a.py", "main", 5);
        assert_int_equal(hec_python_threads(&r->image.python, &r->memory, &r->scratch, NULL, 0, found, 4), 0);
        image_thread(&r->image, MAIN, 77, image_frame(&r->image, code, 0, 0));
        uint64_t other = image_thread(&r->image, 0x8000, 78, 0);
        assert_int_equal(hec_python_threads(&r->image.python, &r->memory, &r->scratch, NULL, 0, found, 4), 2);
        assert_int_equal(found[0].state, other);
        assert_int_equal(read_stack(r, &found[0]), 0); /* it runs no Python */
        image_put(&r->image, other + r->image.python.layout.thread_id, 0x9000);
        assert_int_equal(read_stack(r, &found[0]), HEC_PYTHON_GONE);
        end(r);
    }
}

TEST(code_that_came_in_the_place_of_other_code) {
    struct reader *r = begin(11);
    uint64_t code = image_code(&r->image, "<string>", "old", 5);
    image_thread(&r->image, MAIN, 77, image_frame(&r->image, code, 4, 0));
    struct hec_python_thread thread = first_thread(r);
    assert_stack(read_stack(r, &thread), "old (<string>:5)");
    image_put(&r->image, code + r->image.python.layout.code_name, image_text(&r->image, "new"));
    assert_stack(read_stack(r, &thread), "new (<string>:5)");
    end(r);
}

TEST(the_import_system_says_nothing) {
    struct reader *r = begin(12);
    uint64_t program = image_code(&r->image, "a.py", "<module>", 1),
             imports = image_code(&r->image, "<frozen importlib._bootstrap>", "_call", 100),
             module = image_code(&r->image, "m.py", "<module>", 1);
    uint64_t frame = image_frame(&r->image, program, 12, 0);
    frame = image_frame(&r->image, module, 12, image_frame(&r->image, imports, 0, frame));
    image_thread(&r->image, MAIN, 77, frame);
    struct hec_python_thread thread = first_thread(r);
    assert_stack(read_stack(r, &thread), "<module> (m.py:0) < <module> (a.py:3)");
    end(r);
}

TEST(threads_of_the_hooks_are_left_out) {
    struct reader *r = begin(11);
    uint64_t hooks = image_code(&r->image, "/opt/hec/python/hec/_hooks/stacks.py", "_run", 1);
    image_thread(&r->image, MAIN, 77, image_frame(&r->image, hooks, 0, 0));
    struct hec_python_thread thread = first_thread(r);
    assert_int_equal(read_stack(r, &thread), 0);
    end(r);
}

TEST(deep_stacks_keep_their_ends) {
    struct reader *r = begin(13);
    uint64_t outer = image_code(&r->image, "a.py", "main", 5), code = image_code(&r->image, "a.py", "again", 10);
    uint64_t frame = image_frame(&r->image, outer, 0, 0);
    for (int i = 0; i < 300; i++)
        frame = image_frame(&r->image, code, 0, frame);
    image_thread(&r->image, MAIN, 77, frame);
    struct hec_python_thread thread = first_thread(r);
    int64_t leaf = read_stack(r, &thread);
    int depth = 0;
    uint32_t at = (uint32_t)leaf;
    for (; kept.frame[at].parent; depth++)
        at = kept.frame[at].parent;
    assert_int_equal(depth + 1, HEC_PYTHON_DEPTH_MAX);
    assert_string_equal(kept.name[kept.frame[at].function], "main");
    assert_int_equal(read_stack(r, &thread), leaf);
    end(r);
}

TEST(what_is_torn_is_refused) {
    EACH_VERSION {
        struct reader *r = begin(minor);
        const struct hec_python_layout *l = &r->image.python.layout;
        uint64_t code = image_code(&r->image, "a.py", "main", 5);
        uint64_t frame = image_frame(&r->image, code, 4, 0), thread_at = image_thread(&r->image, MAIN, 77, frame);
        struct hec_python_thread thread = first_thread(r);
        image_put(&r->image, frame + l->frame_previous, frame); /* in a circle */
        assert_int_equal(read_stack(r, &thread), HEC_PYTHON_TORN);
        image_put(&r->image, frame + l->frame_previous, 0x10); /* nowhere */
        assert_int_equal(read_stack(r, &thread), HEC_PYTHON_TORN);
        image_put(&r->image, frame + l->frame_previous, 0);
        image_put(&r->image, frame + l->frame_code, frame); /* no code object */
        assert_int_equal(read_stack(r, &thread), HEC_PYTHON_TORN);
        image_top(&r->image, thread_at, image_frame(&r->image, code, 4000, 0)); /* beyond the code */
        if (minor >= 10) /* older tables do not say where the code ends */
            assert_int_equal(read_stack(r, &thread), HEC_PYTHON_TORN);
        image_top(&r->image, thread_at, image_frame(&r->image, code, 4, 0));
        assert_stack(read_stack(r, &thread), "main (a.py:5)");
        image_put(&r->image, thread_at + l->thread_next, thread_at); /* of threads too */
        struct hec_python_thread many[8];
        assert_int_equal(hec_python_threads(&r->image.python, &r->memory, &r->scratch, NULL, 0, many, 8), 8);
        end(r);
    }
}

/* Frames far from each other, more than are read at once: what they are is read all the same, and what comes after them. */
TEST(more_pieces_than_are_read_at_once) {
    EACH_VERSION {
        struct reader *r = begin(minor);
        uint64_t code = image_code(&r->image, "a.py", "main", 5), inner = image_code(&r->image, "b.py", "inner", 10);
        uint64_t far[2], frame = 0, thread_at;
        far[0] = image_frame(&r->image, code, 4, 0);
        image_room(&r->image, 3 * 4096);
        far[1] = image_frame(&r->image, code, 4, far[0]);
        image_room(&r->image, 3 * 4096);
        frame = image_frame(&r->image, inner, 12, image_frame(&r->image, code, 4, 0));
        thread_at = image_thread(&r->image, MAIN, 77, far[1]);
        struct hec_python_thread thread = first_thread(r);
        assert_true(read_stack(r, &thread) > 0);
        /* as it would be after a stack of as many frames, in turns here and there, the last of which are gone */
        struct hec_python_frame *frames = calloc(HEC_PYTHON_FRAMES_MAX, sizeof *frames);
        for (int i = 0; i < HEC_PYTHON_FRAMES_MAX; i++)
            frames[i] = (struct hec_python_frame){.address = far[i % 2], .code = code};
        assert_non_null(frames);
        struct hec_python_stack before = r->stack;
        r->stack = (struct hec_python_stack){frames, HEC_PYTHON_FRAMES_MAX, HEC_PYTHON_FRAMES_MAX, 0};
        image_top(&r->image, thread_at, frame);
        assert_stack(read_stack(r, &thread), "inner (b.py:12) < main (a.py:5)");
        hec_python_stack_free(&before);
        end(r);
    }
}

/* Any word of the image may be anything, at any moment. */
TEST(no_word_breaks_it) {
    static const uint64_t values[] = {0,          1,        8, IMAGE_BASE, IMAGE_BASE + 8, IMAGE_BASE + IMAGE_BYTES - 8,
                                      UINT64_MAX, INT64_MAX};
    EACH_VERSION {
        struct reader *r = begin(minor);
        uint64_t code = image_code(&r->image, "a.py", "main", 5), inner = image_code(&r->image, "b.py", "inner", 10);
        uint64_t frame = image_c_frame(&r->image, image_frame(&r->image, code, 4, 0));
        image_thread(&r->image, MAIN, 77, image_frame(&r->image, inner, 12, frame));
        struct hec_python_thread thread = first_thread(r);
        for (uint64_t at = 0; at + 8 <= r->image.used; at += 8) {
            uint64_t before = hec_memory_u64(r->image.bytes + at);
            for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
                struct hec_python_thread many[4];
                kept.frames = kept.names = 0;
                hec_python_names_free(&r->names);
                hec_python_named_free(&r->named);
                image_put(&r->image, IMAGE_BASE + at, values[v]);
                int count = hec_python_threads(&r->image.python, &r->memory, &r->scratch, NULL, 0, many, 4);
                assert_true(count >= HEC_PYTHON_TORN && count <= 4);
                assert_true(read_stack(r, &thread) >= HEC_PYTHON_GONE);
            }
            image_put(&r->image, IMAGE_BASE + at, before);
        }
        end(r);
    }
}
