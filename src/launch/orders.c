#include "launch/orders.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AHEAD 2 /* steps: a rank may be one ahead of another */

int hec_orders_open(const char *folder, struct hec_orders *out, struct hec_why *why) {
    *out = (struct hec_orders){.path = ""};
    if (snprintf(out->path, sizeof out->path, "%s/orders", folder) >= (int)sizeof out->path)
        return hec_fail(why, HEC_ERR_LIMIT, "the path of orders for levers is too long");
    int fd = open(out->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot make %s: %s", out->path, strerror(errno));
    void *page = posix_fallocate(fd, 0, HEC_ORDERS_SIZE) == 0
                     ? mmap(NULL, HEC_ORDERS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    close(fd);
    if (page == MAP_FAILED) {
        unlink(out->path);
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for orders for levers");
    }
    out->page = page;
    return HEC_OK;
}

void hec_orders_close(struct hec_orders *orders) {
    if (!orders->page)
        return;
    munmap(orders->page, HEC_ORDERS_SIZE);
    unlink(orders->path);
    *orders = (struct hec_orders){.path = ""};
}

/* The number is written last, and before it one that is no order's: who reads it before and after the levers sees a change of them. */
int hec_orders_give(struct hec_orders *orders, const char *levers, uint32_t changes) {
    size_t length = strlen(levers);
    if (!orders->page || length >= HEC_ORDERS_WANTED_MAX)
        return HEC_ERR_LIMIT;
    uint64_t *number = (uint64_t *)(void *)orders->page;
    __atomic_store_n(number, 0, __ATOMIC_SEQ_CST);
    memset(orders->page + HEC_ORDERS_FROM, 0, sizeof(uint64_t));
    memcpy(orders->page + HEC_ORDERS_CHANGES, &changes, sizeof changes);
    memcpy(orders->page + HEC_ORDERS_WANTED, levers, length + 1);
    __atomic_store_n(number, ++orders->number, __ATOMIC_SEQ_CST);
    return HEC_OK;
}

void hec_orders_agree(struct hec_orders *orders, int ranks) {
    uint64_t latest = 0;
    if (!orders->page || ranks > HEC_ORDERS_RANKS_MOST)
        return;
    uint64_t *from = (uint64_t *)(void *)(orders->page + HEC_ORDERS_FROM);
    if (__atomic_load_n(from, __ATOMIC_SEQ_CST))
        return;
    for (int i = 0; i < ranks; i++) {
        uint64_t *rank = (uint64_t *)(void *)(orders->page + HEC_ORDERS_RANKS + i * HEC_ORDERS_RANK_SIZE);
        if (__atomic_load_n(&rank[0], __ATOMIC_SEQ_CST) != orders->number)
            return;
        uint64_t step = __atomic_load_n(&rank[1], __ATOMIC_SEQ_CST);
        latest = step > latest ? step : latest;
    }
    __atomic_store_n(from, latest + AHEAD, __ATOMIC_SEQ_CST);
}

/* A number of digits alone, which moves *text behind it; 0: there is none. */
static uint64_t take_number(const char **text) {
    char *end;
    errno = 0;
    uint64_t number = **text >= '0' && **text <= '9' ? strtoull(*text, &end, 10) : 0;
    if (!number || errno)
        return 0;
    *text = end;
    return number;
}

static bool take_word(const char **text, const char *word) {
    size_t length = strlen(word);
    bool found = strncmp(*text, word, length) == 0;
    *text += found ? length : 0;
    return found;
}

struct hec_orders_answer hec_orders_answer(const char *phase) {
    static const struct hec_orders_answer none = {.order = 0};
    struct hec_orders_answer out = none;
    out.wrong = take_word(&phase, HEC_ORDERS_WRONG);
    out.failed = !out.wrong && take_word(&phase, HEC_ORDERS_FAILED);
    if ((!out.wrong && !out.failed && !take_word(&phase, HEC_ORDERS_ANSWER)) || !(out.order = take_number(&phase)))
        return none;
    if (!out.wrong)
        return *phase ? none : out;
    out.gradients = take_word(&phase, "/gradients/");
    if (!out.gradients && !take_word(&phase, "/outputs/"))
        return none;
    char *end;
    out.difference = strtod(phase, &end);
    return end != phase && !*end && out.difference > 0 ? out : none;
}
