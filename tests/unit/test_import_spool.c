/* Records of an import that wait: what goes to the file comes back, in order, with what was changed, beside what is in memory. */
#include "store/import/spool.h"
#include "tests/unit/folder.h"

#define COUNT (2 * HEC_IMPORT_SPOOL_KEPT + HEC_IMPORT_SPOOL_CHUNK + 5)

static struct hec_import_spool spool;
static struct hec_why why;

/* From which record on it is called; what they must say; what to add. */
struct seen {
    int64_t next, visits;
    uint64_t plus, add;
};

static int see(void *context, struct hec_import_record *records, size_t count) {
    struct seen *seen = context;
    assert_in_range(count, 1, HEC_IMPORT_SPOOL_CHUNK);
    for (size_t i = 0; i < count; i++) {
        if (records[i].correlation != (uint64_t)seen->next + seen->plus || records[i].activity.start_ns != -seen->next)
            fail_msg("record %d is another", (int)seen->next);
        records[i].correlation += seen->add;
        seen->next++;
    }
    return ++seen->visits == 1000 ? HEC_ERR_LIMIT : HEC_OK;
}

static void visit(int64_t first, int64_t last, bool change, uint64_t plus, uint64_t add, int64_t visits) {
    struct seen seen = {first, 0, plus, add};
    assert_int_equal(hec_import_spool_visit(&spool, first, last, change, see, &seen, &why), HEC_OK);
    assert_int_equal(seen.next, last > first ? last : first);
    assert_int_equal(seen.visits, visits);
}

TEST_WITH(records_come_back, folder_make, folder_remove) {
    const int64_t written = INT64_C(2) * HEC_IMPORT_SPOOL_KEPT, chunk = HEC_IMPORT_SPOOL_CHUNK;
    setenv("TMPDIR", folder, 1);
    hec_import_spool_init(&spool);
    for (int64_t i = 0; i < COUNT; i++) {
        const struct hec_import_record record = {.activity.start_ns = -i, .correlation = (uint64_t)i};
        assert_int_equal(hec_import_spool_add(&spool, &record, &why), HEC_OK);
        assert_int_equal(hec_import_spool_count(&spool), i + 1);
        if (i < HEC_IMPORT_SPOOL_KEPT)
            assert_int_equal(spool.fd, -1); /* all of it fits */
    }
    assert_int_equal(spool.written, written);
    visit(0, COUNT, false, 0, 0, written / chunk + 2);
    visit(written - 1, written + 1, false, 0, 0, 2);
    visit(7, 7, false, 0, 0, 0);
    visit(chunk - 3, 3 * chunk, false, 0, 0, 3);
    visit(0, written, true, 0, 5, written / chunk); /* kept, */
    visit(0, written, false, 5, 9, written / chunk);
    visit(0, written, false, 5, 0, written / chunk); /* and not kept */
    struct seen seen = {0, 999, 5, 0};
    assert_int_equal(hec_import_spool_visit(&spool, 0, COUNT, false, see, &seen, &why), HEC_ERR_LIMIT);
    assert_int_equal(seen.next, chunk); /* the first error ends it */
    assert_int_equal(ftruncate(spool.fd, 100), 0);
    assert_int_equal(hec_import_spool_visit(&spool, 0, 10, false, see, &(struct seen){0, 0, 5, 0}, &why), HEC_ERR_IO);
    assert_string_equal(
        why.text, "cannot read the temporary file of the import: it is cut short (TMPDIR chooses another folder)");
    hec_import_spool_free(&spool);
    assert_int_equal(hec_import_spool_count(&spool), 0);
    assert_int_equal(spool.fd, -1);
    unsetenv("TMPDIR");
}
