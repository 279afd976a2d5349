/* For test_tracer_got: a module that calls got_library's functions, through a slot and through a pointer. */
extern int got_call(int value);
extern int got_other(int value);
int got_user_call(int value);
int got_user_pointer(int value);
int got_user_other(int value);

static int (*volatile const pointer)(int) = got_call;

__attribute__((visibility("default"))) int got_user_call(int value) {
    return got_call(value);
}

__attribute__((visibility("default"))) int got_user_pointer(int value) {
    return pointer(value);
}

__attribute__((visibility("default"))) int got_user_other(int value) {
    return got_other(value);
}
