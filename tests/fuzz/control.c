/* SPDX-License-Identifier: MIT */
/* control.c - what host, spawner and keepers may say to each other: only such words are acted on.
 */
#include "fuzz.h"

#include "wire/control.h"
#include "wire/hello.h"
#include "wire/page.h"

static void check_of_keeper(const struct gpi_control *c)
{
    FUZZ_CHECK(c->kind >= GPI_CTL_STARTED && c->kind <= GPI_CTL_DENIED);
    if (c->kind == GPI_CTL_UNFIT)
        FUZZ_CHECK(c->sys_errno > 0);
    if (c->kind == GPI_CTL_STARTED)
        FUZZ_CHECK(c->sys_errno > 0 || (c->sys_errno == 0 && c->pid > 0));
    if (c->kind == GPI_CTL_DENIED)
        FUZZ_CHECK(c->ways >= 1 && c->ways <= 3 && c->sys_errno > 0);
    if (c->kind == GPI_CTL_EXITED)
        FUZZ_CHECK((c->exit_kind == 1 || c->exit_kind == 2) && c->answer < GPI_ANSWERS &&
                   c->step < GPI_STEPS && c->sys_errno >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char numbers[3];
    struct gpi_control c;
    size_t given;
    uint32_t slots;

    fuzz_take(numbers, sizeof(numbers), &data, &size);
    given = size;
    slots = numbers[0];
    fuzz_take(&c, sizeof(c), &data, &size);
    if (numbers[2] % 4) { /* what fits is rare among random numbers */
        c.kind = GPI_CTL_CONNECT + c.kind % 25;
        given = sizeof(c);
    }
    if (gpi_control_of_keeper(&c, given)) {
        FUZZ_CHECK(given == sizeof(c));
        check_of_keeper(&c);
    }
    if (gpi_control_of_spawner(&c, given, slots)) {
        FUZZ_CHECK(given == sizeof(c) && c.slot < slots);
        FUZZ_CHECK(c.kind == GPI_CTL_MADE || c.kind == GPI_CTL_GONE || c.kind == GPI_CTL_UNFIT);
        FUZZ_CHECK(c.kind != GPI_CTL_GONE && c.sys_errno ? c.sys_errno > 0 : c.pid > 0);
    }
    if (gpi_control_for_keeper(&c, given, numbers[1])) {
        FUZZ_CHECK(given == sizeof(c));
        FUZZ_CHECK(numbers[1] == 0 ||
                   (c.kind == GPI_CTL_START && c.force && numbers[1] >= GPI_CLASS_FDS &&
                    numbers[1] <= GPI_CLASS_FDS_MAX));
        FUZZ_CHECK(c.kind == GPI_CTL_START || c.kind == GPI_CTL_KILL || c.kind == GPI_CTL_ALARM ||
                   c.kind == GPI_CTL_AWAIT || c.kind == GPI_CTL_END);
        FUZZ_CHECK(c.kind != GPI_CTL_KILL || c.cell < GPI_CELLS);
    }
    if (gpi_control_for_spawner(&c, given, numbers[1])) {
        FUZZ_CHECK(given == sizeof(c));
        FUZZ_CHECK(c.kind == GPI_CTL_BYE || (c.kind == GPI_CTL_DROP && c.pid > 0) ||
                   (c.kind == GPI_CTL_MONITOR && numbers[1] == 1) ||
                   (c.kind == GPI_CTL_MAKE && numbers[1] == GPI_MAKE_FDS));
    }
    return 0;
}
