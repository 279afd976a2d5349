/* What objects of CPython mean: lines of instructions, texts, what the interpreter says of itself, and the symbols of its file. */
#include "unit.h"

#include "observe/stacks/decode.h"
#include "observe/stacks/elf.h"

#include <elf.h>

/* ---- lines ---- */

TEST(lines_as_the_interpreters_say) {
    static const struct {
        int minor, size;
        const char *table, *expected;
    } rows[] = {
#define PYTHON_LINES(minor, size, table, expected) {minor, size, table, expected},
#include "python_lines.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int at, line, length, checked = 0;
        for (const char *c = rows[i].expected; sscanf(c, "%d:%d%n", &at, &line, &length) == 2; c += length, checked++)
            assert_int_equal(
                hec_python_line(rows[i].minor, 1, (const unsigned char *)rows[i].table, (size_t)rows[i].size, at),
                line);
        assert_true(checked > 8);
        for (int cut = 0; cut < rows[i].size; cut++) { /* whatever is left of it, the answer is a line or none */
            int32_t found = hec_python_line(rows[i].minor, 1, (const unsigned char *)rows[i].table, (size_t)cut, 40);
            assert_true(found >= -1 && found < 1000);
        }
    }
}

TEST(instructions_beyond_the_table) {
    static const unsigned char ranges[] = {10, 1, 10, 0x80}, locations[] = {128 | 15 << 3 | 4}, damaged[] = {4};
    assert_int_equal(hec_python_line(10, 5, ranges, sizeof ranges, 9), 6);
    assert_int_equal(hec_python_line(10, 5, ranges, sizeof ranges, 10), 0); /* of no line */
    assert_int_equal(hec_python_line(10, 5, ranges, sizeof ranges, 20), -1);
    assert_int_equal(hec_python_line(12, 5, locations, sizeof locations, 8), 0);
    assert_int_equal(hec_python_line(12, 5, locations, sizeof locations, 10), -1);
    assert_int_equal(hec_python_line(12, 5, damaged, sizeof damaged, 0), -1);
    assert_int_equal(hec_python_line(12, 5, damaged, sizeof damaged, -2), 5); /* not begun */
}

/* ---- texts ---- */

static void make_text(const struct hec_python_layout *l, unsigned char object[128], uint64_t length, uint32_t state) {
    memset(object, 0, 128);
    memcpy(object + l->text_length, &length, sizeof length);
    state <<= l->text_kind_shift;
    memcpy(object + l->text_state, &state, sizeof state);
}

TEST(texts_of_each_kind) {
    struct hec_python_layout l;
    struct hec_python_text text;
    unsigned char object[128];
    char out[HEC_PYTHON_TEXT_MAX + 1];
    assert_true(hec_python_layout_of(12, &l));
    make_text(&l, object, 5, 1 | 1 << 3 | 1 << 4);
    assert_true(hec_python_text_at(&l, object, 0x1000, &text));
    assert_int_equal(text.address, 0x1000 + 40);
    hec_python_text_decode(&text, (const unsigned char *)"a.py\0", out);
    assert_string_equal(out, "a.py?"); /* a NUL may be in a name, not in ours */
    make_text(&l, object, 2, 1 | 1 << 3);
    assert_true(hec_python_text_at(&l, object, 0x1000, &text));
    assert_int_equal(text.address, 0x1000 + 56);
    hec_python_text_decode(&text, (const unsigned char *)"\xe9z", out);
    assert_string_equal(out, "\xc3\xa9z");
    make_text(&l, object, 2, 2 | 1 << 3);
    assert_true(hec_python_text_at(&l, object, 0x1000, &text));
    hec_python_text_decode(&text, (const unsigned char *)"\xac\x20\x00\xd8", out);
    assert_string_equal(out, "\xe2\x82\xac?"); /* half a character */
    make_text(&l, object, 1, 4 | 1 << 3);
    assert_true(hec_python_text_at(&l, object, 0x1000, &text));
    hec_python_text_decode(&text, (const unsigned char *)"\x00\xf6\x01\x00", out);
    assert_string_equal(out, "\xf0\x9f\x98\x80");
}

TEST(long_texts_keep_their_end) {
    struct hec_python_layout l;
    struct hec_python_text text;
    unsigned char object[128], letters[255 * 2];
    char out[HEC_PYTHON_TEXT_MAX + 1];
    assert_true(hec_python_layout_of(8, &l));
    make_text(&l, object, 300, 2 | 1 << 3);
    assert_true(hec_python_text_at(&l, object, 0x1000, &text));
    assert_int_equal(text.address, 0x1000 + 72 + 2 * 45);
    assert_int_equal(text.count, 255);
    for (size_t i = 0; i < sizeof letters; i += 2)
        memcpy(letters + i, "\xac\x20", 2);
    hec_python_text_decode(&text, letters, out);
    assert_int_equal(strlen(out), 255); /* 85 characters of three bytes */
    for (int kind = 0; kind < 8; kind++) {
        make_text(&l, object, 3, (uint32_t)kind | 1 << 3);
        assert_int_equal(hec_python_text_at(&l, object, 0, &text), kind == 1 || kind == 2 || kind == 4);
    }
    make_text(&l, object, UINT64_MAX, 1 | 1 << 3);
    assert_false(hec_python_text_at(&l, object, 0, &text));
    make_text(&l, object, 3, 1); /* not compact: its characters lie elsewhere */
    assert_false(hec_python_text_at(&l, object, 0, &text));
}

/* ---- what the interpreter says ---- */

static void put(unsigned char *told, size_t at, uint64_t value) {
    memcpy(told + at, &value, sizeof value);
}

static void tell(unsigned char told[HEC_PYTHON_TOLD_BYTES], int minor) {
    static const struct {
        size_t told[2];
        uint32_t at[2];
    } fields[] = {
#define NONE 0
#define HEC_PYTHON_FIELD(name, a, b, c, d, e, f, g, told_f, told_g) {{told_f, told_g}, {f, g}},
#include "observe/stacks/layouts.def"
#undef HEC_PYTHON_FIELD
#undef NONE
    };
    memset(told, 0, HEC_PYTHON_TOLD_BYTES);
    memcpy(told, "xdebugpy", 8);
    put(told, 8, UINT64_C(0x03000000) | (uint64_t)minor << 16 | 0x1f0);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].told[minor - 13])
            put(told, fields[i].told[minor - 13], fields[i].at[minor - 13]);
}

TEST(a_layout_is_what_the_interpreter_says) {
    for (int minor = 13; minor <= 14; minor++) {
        struct hec_python_layout by_headers, said;
        unsigned char told[HEC_PYTHON_TOLD_BYTES];
        tell(told, minor);
        assert_true(hec_python_layout_of(minor, &by_headers));
        assert_true(hec_python_layout_told(told, sizeof told, &said));
        assert_memory_equal(&said, &by_headers, sizeof said);
        put(told, 40, 648); /* another build: interpreters elsewhere */
        assert_true(hec_python_layout_told(told, sizeof told, &said));
        assert_int_equal(said.runtime_interpreters, 648);
        put(told, 40, UINT64_MAX);
        assert_false(hec_python_layout_told(told, sizeof told, &said));
    }
}

TEST(layouts_that_are_refused) {
    struct hec_python_layout l;
    unsigned char told[HEC_PYTHON_TOLD_BYTES];
    assert_false(hec_python_layout_of(7, &l));
    assert_false(hec_python_layout_of(15, &l));
    tell(told, 13);
    assert_false(hec_python_layout_told(told, 16, &l));
    assert_false(hec_python_layout_told(told, 300, &l));
    put(told, 16, 1); /* without a global lock */
    assert_false(hec_python_layout_told(told, sizeof told, &l));
    tell(told, 13);
    put(told, 8, UINT64_C(0x030f0000));
    assert_false(hec_python_layout_told(told, sizeof told, &l));
    tell(told, 13);
    put(told, 184, HEC_PYTHON_THREAD_BYTES); /* thread_frame: further than a block that is read */
    assert_false(hec_python_layout_told(told, sizeof told, &l));
    memset(told, 0, 8);
    assert_false(hec_python_layout_told(told, sizeof told, &l));
}

/* ---- symbols ---- */

#define FILE_BYTES 2048

static bool read_bytes(void *context, uint64_t offset, void *to, size_t size) {
    if (offset > FILE_BYTES || size > FILE_BYTES - offset)
        return false;
    memcpy(to, (const char *)context + offset, size);
    return true;
}

/* A library that is loaded at 0x400000, with two symbols and a section ".PyRuntime". */
static void make_file(unsigned char bytes[FILE_BYTES]) {
    static const char names[] = "\0_PyRuntime\0Py_Version\0gone", section_names[] = "\0.PyRuntime";
    const Elf64_Ehdr header = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB},
        .e_phoff = 64,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
        .e_shoff = 256,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 5,
        .e_shstrndx = 3};
    const Elf64_Phdr segment = {.p_type = PT_LOAD, .p_vaddr = 0x400000};
    const Elf64_Shdr sections[5] = {
        {0},
        {.sh_type = SHT_DYNSYM,
         .sh_link = 2,
         .sh_offset = 1024,
         .sh_size = 4 * sizeof(Elf64_Sym),
         .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_type = SHT_STRTAB, .sh_offset = 1536, .sh_size = sizeof names},
        {.sh_type = SHT_STRTAB, .sh_offset = 1600, .sh_size = sizeof section_names},
        {.sh_type = SHT_PROGBITS, .sh_name = 1, .sh_addr = 0x412340},
    };
    const Elf64_Sym symbols[4] = {{0},
                                  {.st_name = 1, .st_shndx = 4, .st_value = 0x412340},
                                  {.st_name = 12, .st_shndx = 4, .st_value = 0x401000},
                                  {.st_name = 23, .st_shndx = SHN_UNDEF, .st_value = 0x1}};
    memset(bytes, 0, FILE_BYTES);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + 64, &segment, sizeof segment);
    memcpy(bytes + 256, sections, sizeof sections);
    memcpy(bytes + 1024, symbols, sizeof symbols);
    memcpy(bytes + 1536, names, sizeof names);
    memcpy(bytes + 1600, section_names, sizeof section_names);
}

TEST(symbols_of_a_file) {
    unsigned char bytes[FILE_BYTES];
    struct hec_elf_symbol symbols[] = {{"_PyRuntime", 0}, {"Py_Version", 0}, {"gone", 0}, {".PyRuntime", 0}};
    const struct hec_elf_file file = {bytes, read_bytes};
    uint64_t base;
    make_file(bytes);
    assert_true(hec_elf_find(&file, symbols, 4, &base));
    assert_int_equal(base, 0x400000);
    assert_int_equal(symbols[0].address, 0x412340);
    assert_int_equal(symbols[1].address, 0x401000);
    assert_int_equal(symbols[2].address, 0); /* of another library */
    assert_int_equal(symbols[3].address, 0x412340);
}

/* Any byte may be anything. */
TEST(damaged_files) {
    unsigned char bytes[FILE_BYTES];
    struct hec_elf_symbol symbols[] = {{"_PyRuntime", 0}, {".PyRuntime", 0}};
    const struct hec_elf_file file = {bytes, read_bytes};
    uint64_t base;
    for (size_t at = 0; at < FILE_BYTES; at++) {
        make_file(bytes);
        bytes[at] ^= 0xff;
        if (hec_elf_find(&file, symbols, 2, &base) && at >= 5 && at < 16)
            assert_int_equal(symbols[0].address, 0x412340); /* what is not looked at */
    }
    memcpy(bytes, "#!/bin/sh", 9);
    assert_false(hec_elf_find(&file, symbols, 2, &base));
}
