/* For test_tracer_got: the library whose functions are taken over. */
int got_call(int value);
int got_other(int value);

__attribute__((visibility("default"))) int got_call(int value) {
    return value + 1;
}

__attribute__((visibility("default"))) int got_other(int value) {
    return value + 2;
}
