/* The file of an observed program: symbols that an interpreter has. */
#include "observe/stacks/elf.h"

#include <stdlib.h>
#include <string.h>

struct input {
    const uint8_t *data;
    size_t size;
};

static bool read_input(void *context, uint64_t offset, void *to, size_t size) {
    const struct input *input = context;
    if (offset > input->size || size > input->size - offset)
        return false;
    memcpy(to, input->data + offset, size);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    struct hec_elf_symbol symbols[] = {{"_PyRuntime", 0}, {".PyRuntime", 0}, {"Py_Version", 0}, {"", 0}};
    const struct hec_elf_file file = {&input, read_input};
    uint64_t base;
    if (!hec_elf_find(&file, symbols, 4, &base) && symbols[0].address)
        abort();
    return 0;
}
