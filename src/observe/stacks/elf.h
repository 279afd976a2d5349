/* Symbols of an ELF file of 64 bits in this machine's byte order, as of a Python interpreter. The file is another user's
 * word: nothing in it is believed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hec_elf_file {
    void *context;
    /* False: the file does not have all of it. */
    bool (*read)(void *context, uint64_t offset, void *to, size_t size);
};

struct hec_elf_symbol {
    const char *name;
    uint64_t address; /* as in the file; 0: it has no such symbol */
};

/* Of `count` symbols the first is the one that counts: where it is found among those that others may use, no further table is
 * read. Fills the addresses of `count` symbols, and *base with the address that the file's first byte has when it is loaded where it
 * says. Also finds ".SECTION" names, as symbols. False: it is no such file. */
bool hec_elf_find(const struct hec_elf_file *file, struct hec_elf_symbol *symbols, size_t count, uint64_t *base);
