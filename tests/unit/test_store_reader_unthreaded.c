/* Where no thread can be made (ulimit -u), the caller's own unpacks: same activities. */
#include "store_activities.h"

#include <errno.h>
#include <pthread.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *context) {
    (void)thread, (void)attributes, (void)start, (void)context;
    return EAGAIN;
}

static struct hec_reader *file(struct store_list *list, size_t count) {
    STORE_BEGIN("unthreaded.hec", 0);
    store_define(s);
    for (size_t i = 0; i < count; i++) {
        struct hec_activity a = store_random_activity(0, (int64_t)i * 1000);
        store_put(s, list, a, 0);
    }
    store_close(writer);
    return store_open(path);
}

TEST(same_activities) {
    struct store_list list = {0};
    struct hec_reader *reader = file(&list, 20000);
    store_list_check(reader, &list, HEC_ACTIVITY_ALL);
    store_list_free(&list);
    hec_reader_close(reader);
}

TEST(each_visitor_sees_all) {
    struct store_list list = {0}, one = {0}, other = {0};
    struct hec_reader *reader = file(&list, 20000);
    const struct hec_activity_visitor visitors[] = {{&one, store_list_collect}, {&other, store_list_collect}};
    assert_int_equal(hec_reader_activities_beside(reader, HEC_ACTIVITY_ALL, visitors, 2, NULL), 0);
    assert_int_equal(one.count, list.count);
    assert_int_equal(other.count, list.count);
    assert_memory_equal(one.all, other.all, one.count * sizeof *one.all);
    store_list_free(&one);
    store_list_free(&other);
    store_list_free(&list);
    hec_reader_close(reader);
}

TEST(visitors_may_stop) {
    struct store_list list = {0};
    struct hec_reader *reader = file(&list, 20000);
    int calls = 0;
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_stop_at_once, &calls, NULL), 42);
    assert_int_equal(calls, 1);
    store_list_free(&list);
    hec_reader_close(reader);
}
