/* SPDX-License-Identifier: MIT */
/*
 * page.h - the status page: the memory one worker shares with the host (and, for a few
 * words, with its keeper).  Everything that must survive the worker's death is here.
 *
 * One page per slot.  It holds a header, one cell per task in flight, and the table of
 * granules of the slot's result arena.
 *
 * Sending: the host fills a cell, writes its index into `order` at the send number, stores the
 * claim word, then raises `sent_number`.  Ending: the worker completes the end record, then
 * stores the end word.  Whoever is awake finds these by looking.  Bells: one who is about to
 * sleep stores its `..._sleeps` word, looks once more, and then waits at its pipe; the other,
 * after each store above, looks at that word and, if it can take it back to 0, rings.  Both
 * stores come before both looks in one total order (sequentially consistent fences), so no
 * wake-up is lost.
 *
 * Nobody ever waits on these words: they are not locks.  Each word has one writer, except
 * the claim word and the sleeps words, which are decided by atomic exchange, and
 * `progress_pending`.
 *
 * A worker is not trusted: the host reads each of its words once, into a copy, and checks
 * the copy (C17).
 */
#ifndef GPI_WIRE_PAGE_H
#define GPI_WIRE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPI_PAGE_MAGIC 0x44555047u /* "GPUD" */
#define GPI_PAGE_VERSION 1u
#define GPI_CELLS 64u
#define GPI_INLINE_SIZE 4096u
#define GPI_LABEL_SIZE 64u     /* with the terminating zero; stored just before the task's data */
#define GPI_FAIL_TEXT_SIZE 256u
#define GPI_PROGRESS_TEXT_SIZE 96u
#define GPI_LOG_LINES 16u
#define GPI_LOG_TEXT_SIZE 200u
#define GPI_DEVICE_SIZE 512u   /* names of a worker's devices, comma-separated */
#define GPI_DEVICES 16u         /* of a worker, at most */
#define GPI_DEVICE_NAME_SIZE 32u
#define GPI_DEVICE_UUID_SIZE 96u
#define GPI_NAME_SIZE 64u      /* of a definition's name, with the terminating zero */
#define GPI_KEEPER_WORDS 4096u /* room for the keeper's words: a page */
#define GPI_GRANULE 65536u     /* unit of the result arena */
/* a worker pins arenas in such pieces, and nothing of at most that size lies across two */
#define GPI_PIN_PIECE ((uint64_t)1 << 30)

/* Claim word: (send number << 2) | state.  A send number is never reused in a slot, so a
 * stale frame claims nothing. */
enum gpi_claim { GPI_SENT = 0, GPI_CLAIMED = 1, GPI_RECALLED = 2, GPI_CANCELLED = 3 };

/* End word: (send number << 8) | end. */
enum gpi_end {
    GPI_END_NONE = 0,
    GPI_END_OK = 1,
    GPI_END_FAILED = 2,
    GPI_END_EXPIRED = 3 /* not started */
};

/* A canary: a context, a small kernel, its result compared.  Asked before setup, on GPUs and fakes.
 */
enum gpi_canary {
    GPI_CANARY_NO,
    GPI_CANARY_FIRST /* then setup, if it has passed */,
    GPI_CANARY_ONLY /* then the worker ends */
};
enum gpi_canary_done { GPI_CANARY_NOT_YET, GPI_CANARY_PASSED, GPI_CANARY_FAILED };

#define GPI_NO_KEEPER "the keeper process ended before the worker started"

/* exit status of a worker that leaves since `fault` ends its use of CUDA */
#define GPI_EXIT_FAULT 77

/* Where a result lies. */
enum gpi_place { GPI_PLACE_NONE = 0, GPI_PLACE_CELL = 1, GPI_PLACE_ARENA = 2 };

#define GPI_CELL_EXPIRED 1u /* the alarm flag was seen; told for diagnosis, never judged by */
#define GPI_CELL_TEXT 2u    /* fail_text belongs to this attempt */
#define GPI_CELL_FIRST 4u   /* the first member of a batch */
/* from this bit on: how many members its batch had; 0 for a task run by itself */
#define GPI_CELL_BATCH 8

#define GPI_ALONE 0x80u /* in `order`, beside the cell: the task is not to share a batch */
#define GPI_LAST 0x40u  /* in `order`: the worker gets no further task, so a batch need not wait */

/* A task in flight.  The first line is the host's, the second the worker's. */
struct gpi_cell {
    _Alignas(64) _Atomic uint64_t claim;
    uint64_t task_id;
    uint64_t tag;
    uint64_t limit;     /* nanoseconds, UINT64_MAX = never */
    _Atomic uint64_t data_off; /* in the input arena; the worker looks at it before it claims, to
                                  ask for the memory */
    uint64_t data_size;
    uint32_t attempt;
    uint16_t has_label; /* at data_off - GPI_LABEL_SIZE */
    uint16_t stalls;    /* there is a stall_limit */
    uint64_t expires_at; /* not to be started from then on; 0 = never */

    _Alignas(64) _Atomic uint64_t end;
    _Atomic uint64_t started_at;
    uint64_t ended_at;
    uint64_t stopped;     /* time within the attempt that the keeper saw the worker stopped */
    uint64_t result_off;  /* in the result arena, when result_place says so */
    uint64_t result_size;
    int32_t code;
    uint16_t result_place;
    uint16_t flags;
    _Atomic uint64_t stopped_before; /* stopped_ns when the attempt began */
};

/* What a cell needs beside its two hot lines.  71 cache lines: an odd number, so that the
 * same field of neighbouring cells does not fall into the same cache set. */
struct gpi_cell_extra {
    _Alignas(64) _Atomic uint32_t progress_seq; /* odd while being written */
    uint32_t reserved;
    _Atomic uint64_t progress; /* bits of a double */
    char progress_text[GPI_PROGRESS_TEXT_SIZE];
    char fail_text[GPI_FAIL_TEXT_SIZE];
    uint64_t stall_limit; /* the host's; read when the cell says so */
    /* when the ended attempt had made no progress for so long, 0 = it had; written for such
     * alone */
    uint64_t stalled_at;
    char pad[448u - 32u - GPI_PROGRESS_TEXT_SIZE - GPI_FAIL_TEXT_SIZE]; /* seven lines in all */
    unsigned char result[GPI_INLINE_SIZE];
};

struct gpi_log_line {
    uint32_t level;
    char text[GPI_LOG_TEXT_SIZE];
};

/* One granule of the result arena is free when used == freed.  `used` is the worker's,
 * `freed` the host's. */
struct gpi_granule {
    _Atomic uint32_t used;
    _Atomic uint32_t freed;
};

struct gpi_page {
    /* written by the host before the first start */
    uint32_t magic;
    uint32_t version;
    uint32_t slot;
    uint32_t definition; /* index given to gpud_init */
    uint64_t seed;
    uint64_t setup_off; /* in the input arena, or in memory of its own */
    uint64_t setup_size;
    uint64_t input_size;  /* of the arenas, in bytes */
    uint64_t result_size;
    char device[GPI_DEVICE_SIZE];
    /* of the definition; "" = the only one: for a worker that was executed */
    char name[GPI_NAME_SIZE];
    uint32_t device_kind;     /* enum gpud_device_kind: of all its devices */
    uint32_t cuda;            /* bits of enum gpud_cuda */
    char uuid[GPI_DEVICES][GPI_DEVICE_UUID_SIZE]; /* of its devices, in order */

    /* written by the host at any time */
    _Alignas(64) _Atomic uint32_t incarnation;
    _Atomic uint32_t log_read;
    _Atomic uint64_t share;  /* bytes of the result arena the worker may use */
    _Atomic uint64_t cancel; /* bit per cell: the running task in it is to be cancelled */
    uint64_t first_number;   /* the first send number of this incarnation */
    uint32_t canary;         /* enum gpi_canary: what this incarnation is to do before setup */
    uint32_t fake_fails;     /* of a fake device, as its script says now: 1 = the canary fails */
    uint64_t fake_boot;      /* how long its canary and boot take, ns, before setup */
    uint64_t batch_wait;     /* before the first start, as is */
    uint32_t max_batch;
    _Atomic uint32_t closing; /* 1 = the worker waits for room no more */
    uint64_t result_wait;     /* before the first start, as is */
    uint32_t visible; /* enum gpud_visible: what this incarnation finds in CUDA_VISIBLE_DEVICES.
                                 AUTO: numbers, unless there is an MPS daemon; the keeper
                                 replaces it by one of the others before the fork */
    uint32_t number[GPI_DEVICES]; /* of its GPUs, see device/numbers.h */

    _Alignas(64) _Atomic uint64_t sent_number; /* of the last task sent */
    _Atomic uint32_t host_cpu; /* that the host last sent from */
    _Atomic uint8_t order[GPI_CELLS]; /* cell of send number n, ALONE and LAST, at n % 64; a stale
                                         one fails its claim */

    _Alignas(64) _Atomic uint32_t worker_sleeps;
    _Atomic uint32_t worker_wants_room; /* it sleeps within a task until the arena has room */
    _Alignas(64) _Atomic uint32_t host_sleeps;

    /* written by the keeper; a page of its own, which the worker can only read */
    _Alignas(GPI_KEEPER_WORDS) _Atomic uint64_t stopped_ns; /* of this incarnation, ended stops */
    _Atomic uint64_t stopped_since; /* 0 = not stopped now */
    _Atomic uint32_t stops;
    _Atomic uint32_t continues;

    /* written by the worker */
    _Alignas(GPI_KEEPER_WORDS) _Atomic uint32_t log_written;
    _Atomic uint32_t log_dropped;
    _Atomic uint32_t granules_used; /* one more than the highest index it ever took */
    _Atomic uint64_t room_wanted; /* bytes of the result that it waits for; valid with NEWS_ROOM */
    _Atomic uint32_t setup_done; /* 1 = ready, 2 = failed */
    _Atomic uint32_t cleanup_done;
    /* enum gpi_canary_done; FAILED, and setup, too, where the devices could not be opened */
    _Atomic uint32_t canary_done;
    char canary_text[GPI_FAIL_TEXT_SIZE]; /* why it failed */
    _Atomic uint32_t miscounted; /* 1 = CUDA has no GPU, or another one, where it has its numbers */
    /* CUDA's code of an error that ends the worker, 0 = none; stored before the end of the task
     * that is charged with it */
    _Atomic uint32_t fault;
    char fault_text[GPI_FAIL_TEXT_SIZE]; /* its name and words */
    int32_t setup_code;
    char setup_text[GPI_FAIL_TEXT_SIZE];
    char leave_text[GPI_FAIL_TEXT_SIZE]; /* why it gave up, beside the exit status; or "" */
    struct gpi_log_line log[GPI_LOG_LINES];
    /* of the call that runs, if it has a stall limit */
    _Atomic uint64_t progress_at;      /* the last progress, at first the start */
    _Atomic uint64_t progress_stopped; /* stopped_ns then */
    _Atomic uint64_t stalled_at;       /* when the stall limit had passed, 0 = not */

    /* bit per cell: the worker sets it and tells the host only when it was clear */
    _Alignas(64) _Atomic uint64_t progress_pending;

    struct gpi_cell cell[GPI_CELLS];
    struct gpi_cell_extra extra[GPI_CELLS];
    struct gpi_granule granule[]; /* result_size / GPI_GRANULE of them */
};

_Static_assert(sizeof(struct gpi_cell) == 128, "two lines a cell");
_Static_assert(sizeof(struct gpi_cell_extra) == (size_t)71 * 64, "an odd number of lines");

static inline uint64_t gpi_claim_word(uint64_t number, enum gpi_claim state)
{
    return number << 2 | (uint64_t)state;
}

static inline uint64_t gpi_end_word(uint64_t number, enum gpi_end end)
{
    return number << 8 | (uint64_t)end;
}

/* Bytes of a page whose result arena has `result_size` bytes. */
size_t gpi_page_size(uint64_t result_size);

/* Called after a store that the other side should see: whether its bell is to be rung. */
bool gpi_page_must_ring(_Atomic uint32_t *sleeps);

/* Moves a sent task to `to`; the one who gets true owns what happens next. */
bool gpi_cell_take(struct gpi_cell *c, uint64_t number, enum gpi_claim to);

/* What the worker wrote about an ended attempt: one checked copy. */
struct gpi_ending {
    enum gpi_end end;
    uint64_t started_at, ended_at, stopped;
    uint64_t result_off, result_size;
    enum gpi_place result_place;
    int32_t code;
    uint32_t batch;  /* members of its call, itself included */
    bool first;      /* of them */
    bool has_text;
    bool expired; /* the alarm flag was seen; never judged by */
    /* 0 = it has not; filled by gpi_cell_stalled for those with a stall limit */
    uint64_t stalled_at;
};

enum gpi_look { GPI_LOOK_NOT_YET, GPI_LOOK_ENDED, GPI_LOOK_BAD };

/* Reads a cell's end record.  `sent_at` and `now` bound its times, `result_arena` its places.
 * BAD: the record cannot have been written by an honest worker. */
enum gpi_look gpi_cell_look(const struct gpi_cell *c, uint64_t number, uint64_t sent_at,
                            uint64_t now, uint64_t result_arena, struct gpi_ending *ret);

/* Reads when a stall limit had passed in an ended attempt, 0 = it has not; false: that cannot be.
 */
bool gpi_cell_stalled(const struct gpi_cell_extra *x, uint64_t stall_limit, struct gpi_ending *e);

/* Records a failed setup, in a worker or a process that is to become one; the caller exits. */
void gpi_page_setup_failed(struct gpi_page *p, int code, const char *text);

/* Copies a zero-terminated text of at most `size` - 1 bytes out of shared memory. */
void gpi_page_text(char *to, const char *from, size_t size);

/* Reads progress and its text; false when it was being written. */
bool gpi_cell_progress(const struct gpi_cell_extra *x, double *ret_fraction, char *text);

#endif
