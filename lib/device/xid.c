/* SPDX-License-Identifier: MIT */
#include "device/xid.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/failure.h"

/*
 * X(first, last, class, text).  Where the catalog names a workflow instead of an action, or
 * nothing:
 *
 * - 13, 31, 68: its action is to restart the program, but an event does not name the program.  They
 *   are a program's own faults (a bad address, a bad video stream).  The worker at fault gets a
 *   CUDA error, which is charged to its task.  To restart all of the GPU's workers would blame the
 *   device for a task, and tasks for their neighbours, or for foreign processes.
 * - 45: follows any death of a program on the GPU, also of a foreign one, or another fault with a
 *   number of its own: counted only.
 * - 48: an uncorrectable memory error that only a reset clears; 94 and 95 report whether it was
 *   contained.
 * - 74, 144-150: NVLink: an event does not report how bad it is, and no canary uses a link.  74 is
 *   older than the driver's recovery action and so counts as a reset.  144-150 accompany such an
 *   action, which then decides; until it does they are a restart.
 * - 54, 151, 167-169: the catalog requires work by hand, a new virtual machine, or nothing; the
 *   device cannot be trusted until a person has seen to it.
 * - 171, 172: accompany 48 and name the memory.
 *
 * Numbers that the catalog calls unused, and those of confidential computing (166, 170), are left
 * out: SUSPECT.
 */
#define XIDS(X)                                                                         \
    X(8, 8, RESTART, "the GPU stopped processing")                                      \
    X(11, 11, RESTART, "corrupt command stream")                                        \
    X(13, 13, TASK, "a kernel did something illegal")                                   \
    X(14, 14, IGNORE, "an injected error")                                              \
    X(25, 25, RESTART, "illegal command stream")                                        \
    X(31, 31, TASK, "a kernel used a bad address")                                      \
    X(32, 32, RESTART, "corrupt command stream")                                        \
    X(37, 38, IGNORE, "firmware error of the driver")                                   \
    X(39, 41, RESTART, "copy engine error")                                             \
    X(43, 43, IGNORE, "a program was ended by its own fault")                           \
    X(44, 44, IGNORE, "fault during a context switch")                                  \
    X(45, 45, IGNORE, "cleanup after a program that died")                              \
    X(46, 46, RESET, "the GPU stopped processing")                                      \
    X(48, 48, RESET, "uncorrectable memory error")                                      \
    X(54, 54, RESET, "auxiliary power is not connected")                                \
    X(60, 60, RESTART, "security engine error")                                         \
    X(62, 62, RESET, "internal micro-controller halted")                                \
    X(63, 63, IGNORE, "a memory row was remapped")                                      \
    X(64, 64, RESET, "a memory row could not be remapped")                              \
    X(66, 67, IGNORE, "illegal access by the driver")                                   \
    X(68, 68, TASK, "video decoder error")                                              \
    X(69, 69, RESTART, "graphics engine class error")                                   \
    X(70, 72, RESTART, "copy engine error")                                             \
    X(74, 74, RESET, "NVLink error")                                                    \
    X(75, 77, RESTART, "copy engine error")                                             \
    X(78, 78, RESTART, "virtual GPU start error")                                       \
    X(79, 79, LOST, "fallen off the bus")                                               \
    X(80, 80, RESTART, "corrupt data sent to the GPU")                                  \
    X(82, 82, RESTART, "JPEG engine error")                                             \
    X(83, 84, RESTART, "video decoder error")                                           \
    X(85, 85, RESTART, "copy engine error")                                             \
    X(86, 86, RESTART, "optical flow engine error")                                     \
    X(88, 89, RESTART, "video decoder error")                                           \
    X(92, 92, IGNORE, "many corrected memory errors")                                   \
    X(93, 93, IGNORE, "wear limit of the board's memory")                               \
    X(94, 94, RESTART, "contained memory error")                                        \
    X(95, 95, RESET, "uncontained memory error")                                        \
    X(96, 98, RESTART, "video decoder error")                                           \
    X(99, 105, RESTART, "JPEG engine error")                                            \
    X(106, 107, IGNORE, "management test message")                                      \
    X(109, 109, RESET, "context switch timed out")                                      \
    X(110, 110, RESET, "security fault")                                                \
    X(119, 119, RESET, "the GPU's system processor does not reply")                     \
    X(120, 120, RESET, "error in the GPU's system processor")                           \
    X(121, 121, IGNORE, "corrected error on the link to the CPU")                       \
    X(126, 135, RESTART, "copy engine error")                                           \
    X(136, 136, RESET, "link training failed")                                          \
    X(137, 137, IGNORE, "illegal access over NVLink")                                   \
    X(139, 139, RESTART, "optical flow engine error")                                   \
    X(140, 140, RESET, "unrecovered memory error")                                      \
    X(141, 141, IGNORE, "fast path error")                                              \
    X(142, 142, RESTART, "video encoder error")                                         \
    X(143, 143, RESET, "the GPU could not be initialised")                              \
    X(144, 150, RESTART, "NVLink error")                                                \
    X(151, 151, RESET, "key rotation error")                                            \
    X(152, 153, IGNORE, "deep learning accelerator error")                              \
    X(154, 154, IGNORE, "the driver's recovery action has changed")                     \
    X(155, 155, RESET, "NVLink went down")                                              \
    X(156, 156, RESET, "a part was retired")                                            \
    X(157, 157, IGNORE, "a part could not be retired")                                  \
    X(158, 158, RESET, "fatal timeout")                                                 \
    X(159, 159, RESTART, "error on the link to the CPU")                                \
    X(160, 160, IGNORE, "a memory channel was retired")                                 \
    X(161, 161, IGNORE, "a memory channel could not be retired")                        \
    X(162, 165, IGNORE, "power smoothing")                                              \
    X(167, 167, RESET, "fatal timeout on PCIe")                                         \
    X(168, 168, RESET, "errors in protected memory")                                    \
    X(169, 169, RESET, "security processor halted")                                     \
    X(171, 171, IGNORE, "uncorrectable error in DRAM, details of 48")                   \
    X(172, 172, IGNORE, "uncorrectable error in SRAM, details of 48")                   \
    X(999, 999, UNKNOWN, "the driver does not report which")

struct row {
    uint16_t first, last;
    uint8_t class;
    const char *text;
};

#define X_ROW(first, last, class, text) { first, last, GPI_XID_##class, text },
static const struct row table[] = { XIDS(X_ROW) };
#undef X_ROW

static const struct row *find(uint64_t xid)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (xid >= table[i].first && xid <= table[i].last)
            return &table[i];
    return NULL;
}

enum gpi_xid_class gpi_xid_class(const struct gpi_xid_rules *rules, uint64_t xid)
{
    const struct row *row = find(xid);

    for (uint32_t i = 0; rules && i < rules->n; i++)
        if (rules->rule[i].xid == xid)
            return (enum gpi_xid_class)rules->rule[i].class;
    return row ? (enum gpi_xid_class)row->class : GPI_XID_UNKNOWN;
}

const char *gpi_xid_text(uint64_t xid)
{
    const struct row *row = find(xid);

    return row ? row->text : "";
}

/* ---- the user's rules ---- */

static const char *const words[GPI_XID_CLASSES] = {
    [GPI_XID_IGNORE] = "ignore", [GPI_XID_RESTART] = "restart", [GPI_XID_RESET] = "reset",
    [GPI_XID_LOST] = "lost",     [GPI_XID_UNKNOWN] = "suspect", [GPI_XID_TASK] = "task",
};

/* Reads NUMBER=WORD, exactly. */
static bool read_rule(const char *at, size_t length, uint32_t *ret_xid, uint32_t *ret_class)
{
    const char *equals = memchr(at, '=', length);
    uint32_t xid = 0;
    size_t n;

    if (!equals || equals == at)
        return false;
    for (const char *p = at; p < equals; p++) {
        if (*p < '0' || *p > '9' || xid > GPI_XID_MOST)
            return false;
        xid = xid * 10 + (uint32_t)(*p - '0');
    }
    n = length - (size_t)(equals + 1 - at);
    for (uint32_t class = 0; class < GPI_XID_CLASSES; class++) {
        if (strlen(words[class]) != n || memcmp(words[class], equals + 1, n) != 0)
            continue;
        *ret_xid = xid;
        *ret_class = class;
        return xid >= 1 && xid <= GPI_XID_MOST;
    }
    return false;
}

static bool is_there(const struct gpi_xid_rules *rules, uint32_t xid)
{
    for (uint32_t i = 0; i < rules->n; i++)
        if (rules->rule[i].xid == xid)
            return true;
    return false;
}

int gpi_xid_rules_read(struct gpi_xid_rules *ret, const char *text, struct gpud_error *e)
{
    struct gpi_xid_rules rules = { .n = 0 };
    unsigned position = 0;

    for (const char *at = text && *text ? text : NULL; at;) {
        const size_t length = strcspn(at, ",");
        const int shown = (int)(length < 40 ? length : 40);
        uint32_t xid = 0, class = 0;
        const char *what = NULL;

        position++;
        if (!read_rule(at, length, &xid, &class))
            what = "is not NUMBER=WORD with a number from 1 to 999 and one of ignore, task, "
                   "restart, reset, lost, suspect";
        else if (is_there(&rules, xid))
            what = "repeats the XID of an earlier entry";
        else if (rules.n == GPI_XID_RULES_MAX)
            what = "is one too many, the maximum is 32";
        if (what)
            return gpi_fail(e, GPUD_EINVAL, 0, "xid_rules", "entry %u, \"%.*s\", %s", position,
                            shown, at, what);
        rules.rule[rules.n].xid = xid;
        rules.rule[rules.n++].class = class;
        at = at[length] ? at + length + 1 : NULL;
    }
    *ret = rules;
    return 0;
}
