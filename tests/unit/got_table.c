/* For test_tracer_got_data: a runtime that keeps addresses of functions in tables of its own. */
typedef int (*function)(int);
void got_table_fill(function f);
int got_table_call(int at, int value);
void *got_table_page(void);

#define HIDDEN __attribute__((visibility("hidden"))) /* not static: clang would make several of one */

/* The last one lies beyond what is read of a module. */
HIDDEN struct {
    function first;
    char filler[72 << 20];
    function last;
} zeroed;
HIDDEN struct {
    long other;
    function first;
    char odd;
    char misaligned[sizeof(function)]; /* not a word of its own */
} __attribute__((packed)) mixed = {1, 0, 1, {0}};
HIDDEN struct {
    function first;
    char rest[8192 - sizeof(function)];
} page __attribute__((aligned(4096))) = {0, {1}};

__attribute__((visibility("default"))) void got_table_fill(function f) {
    zeroed.first = zeroed.last = mixed.first = page.first = f;
    __builtin_memcpy(mixed.misaligned, &f, sizeof f);
}

__attribute__((visibility("default"))) int got_table_call(int at, int value) {
    function misaligned;
    __builtin_memcpy(&misaligned, mixed.misaligned, sizeof misaligned);
    function all[] = {zeroed.first, mixed.first, page.first, misaligned, zeroed.last};
    return all[at](value);
}

__attribute__((visibility("default"))) void *got_table_page(void) {
    return &page;
}
