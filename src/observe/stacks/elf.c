#include "observe/stacks/elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define SECTIONS_MAX 4096
#define SEGMENTS_MAX 256
#define TABLE_MAX (256u << 20) /* bytes of a table of symbols or of their names */
#define CHUNK 1024             /* symbols that are read at once */

struct search {
    const struct hec_elf_file *file;
    struct hec_elf_symbol *symbols;
    size_t count;
};

static bool first_segment(const struct hec_elf_file *file, const Elf64_Ehdr *header, uint64_t *base) {
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > SEGMENTS_MAX)
        return false;
    for (size_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!file->read(file->context, header->e_phoff + i * sizeof segment, &segment, sizeof segment))
            return false;
        if (segment.p_type == PT_LOAD) {
            *base = segment.p_vaddr - segment.p_offset;
            return true;
        }
    }
    return false;
}

/* NUL-terminated. */
static char *names_of(const struct hec_elf_file *file, const Elf64_Shdr *table) {
    char *names = table->sh_size > 0 && table->sh_size <= TABLE_MAX ? malloc(table->sh_size + 1) : NULL;
    if (names && file->read(file->context, table->sh_offset, names, table->sh_size)) {
        names[table->sh_size] = '\0';
        return names;
    }
    free(names);
    return NULL;
}

static void take(const struct search *s, const char *name, uint64_t address) {
    for (size_t i = 0; i < s->count; i++)
        if (!s->symbols[i].address && strcmp(name, s->symbols[i].name) == 0)
            s->symbols[i].address = address;
}

static void search_table(const struct search *s, const Elf64_Shdr *table, const Elf64_Shdr *names) {
    char *text = table->sh_size <= TABLE_MAX ? names_of(s->file, names) : NULL;
    Elf64_Sym *chunk = text ? malloc(CHUNK * sizeof *chunk) : NULL;
    size_t total = table->sh_size / sizeof *chunk;
    for (size_t at = 0; chunk && at < total; at += CHUNK) {
        size_t count = total - at < CHUNK ? total - at : CHUNK;
        if (!s->file->read(s->file->context, table->sh_offset + at * sizeof *chunk, chunk, count * sizeof *chunk))
            break;
        for (size_t i = 0; i < count; i++)
            if (chunk[i].st_shndx != SHN_UNDEF && chunk[i].st_name < names->sh_size)
                take(s, text + chunk[i].st_name, chunk[i].st_value);
    }
    free(chunk);
    free(text);
}

static void search_sections(const struct search *s, const Elf64_Shdr *sections, size_t count, size_t names_at) {
    char *names = names_at < count ? names_of(s->file, &sections[names_at]) : NULL;
    for (size_t i = 0; i < count; i++) {
        const Elf64_Shdr *section = &sections[i];
        /* the larger table has what the other lacks: it is not read where that has the first symbol */
        bool wanted = section->sh_type == SHT_DYNSYM || (section->sh_type == SHT_SYMTAB && !s->symbols[0].address);
        if (wanted && section->sh_link < count && section->sh_entsize == sizeof(Elf64_Sym))
            search_table(s, section, &sections[section->sh_link]);
        if (names && section->sh_name < sections[names_at].sh_size)
            take(s, names + section->sh_name, section->sh_addr);
    }
    free(names);
}

bool hec_elf_find(const struct hec_elf_file *file, struct hec_elf_symbol *symbols, size_t count, uint64_t *base) {
    Elf64_Ehdr header;
    const struct search search = {file, symbols, count};
    for (size_t i = 0; i < count; i++)
        symbols[i].address = 0;
    if (!file->read(file->context, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB) ||
        !first_segment(file, &header, base))
        return false;
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 || header.e_shnum > SECTIONS_MAX)
        return true;
    Elf64_Shdr *sections = malloc(header.e_shnum * sizeof *sections);
    if (sections && file->read(file->context, header.e_shoff, sections, header.e_shnum * sizeof *sections))
        search_sections(&search, sections, header.e_shnum, header.e_shstrndx);
    free(sections);
    return true;
}
