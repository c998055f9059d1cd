/* SPDX-License-Identifier: MIT */
/*
 * event.h - the states, events, actions and ends that the core and its caller exchange.
 *
 * Each list exists once, in this file.  The enumerators, the texts, the log, its parser and the
 * scripts of tests/sched come from it.  An event or action is a row of numbers.  The column
 * `fields` names the fields that count.  The columns of words name the values of "how" and
 * "what".  In a log, '+' separates words that are bits.
 */
#ifndef GPI_SCHED_EVENT_H
#define GPI_SCHED_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_NOWHERE UINT32_MAX /* no slot, no device */

/* ---- the fields ---- */

enum gpi_sched_field {
    GPI_F_SLOT = 1,        /* s=  */
    GPI_F_INCARNATION = 2, /* i=  the number of the slot's worker, or of the task's grant; from 1 */
    GPI_F_TASK = 4,        /* t=  the task's record, a number below settings.tasks */
    GPI_F_DEVICE = 8,      /* d=  */
    GPI_F_CELL = 16,       /* c=  the task's cell at its worker, below 64 */
    GPI_F_HOW = 32,        /* how=  a word of the first list; '+' separates words that are bits */
    GPI_F_WHAT = 64,       /* what= one word of the second list */
    GPI_F_AT = 128,        /* at=  ns on the caller's clock, or "never" */
    GPI_F_CLASS = 256      /* k=  */
};
#define GPI_SCHED_FIELDS(X) \
    X(SLOT, slot, "s") X(INCARNATION, incarnation, "i") X(TASK, task, "t") \
    X(DEVICE, device, "d") X(CELL, cell, "c") X(HOW, how, "how") X(WHAT, what, "what") \
    X(AT, at, "at") X(CLASS, class, "k")

/* ---- states ---- */

/*
 * The life of a slot.  Every slot is in exactly one of these states.  The table of slot.c has the
 * effect of each input in each state.
 */
#define GPI_LIFE_MAP(X) \
    X(OFF)      /* the slot has never had a WANT */ \
    X(WAIT)     /* the slot wants a worker; it lacks a keeper, its devices' memory, or its turn */ \
    X(BOOT)     /* START is sent; the executed program has not called gpud_init */ \
    X(SETUP)    /* the worker runs its canary and setup */ \
    X(UP)       /* the worker takes tasks */ \
    X(LEAVE)    /* the worker takes no new task; it ends when it has no task left */ \
    X(END)      /* END is sent; the worker runs cleanup */ \
    X(DOOMED)   /* a kill is ordered for a task's limit; the keeper may still spare the worker */ \
    X(KILL)     /* a kill is ordered for good, or the keeper kills on its own */ \
    X(SWEEP)    /* the worker is dead; the keeper kills the processes that the worker started */ \
    X(LOST)     /* the keeper is lost with its worker; the core awaits KEEPER_GONE */ \
    X(BACKOFF)  /* the slot waits for the time of its next start */ \
    X(PARKED)   /* its devices do not let the slot have a worker */ \
    X(FAILED)   /* given up: the slot gets no worker until the user returns its device */ \
    X(STUCK)    /* the worker survived SIGKILL: the slot is out of use for good */ \
    X(STOPPED)  /* the dispatcher is closed, and the slot has no worker */ \
    X(REMOVED)  /* the device of the slot is removed; WANT revives the slot */ \
    X(COOL)     /* pooled: the worker is gone, and the memory of its devices is not free again */
#define GPI_X_LIFE(name) GPI_LIFE_##name,
enum gpi_life { GPI_LIFE_MAP(GPI_X_LIFE) GPI_LIVES };
#undef GPI_X_LIFE

/* ---- events: facts that the caller has checked ---- */

/* X(NAME, fields, words of `how`, whether these are bits, words of `what`)
 *
 * Slot, keeper, spawner:
 *   WANT          the slot is to have a worker.  The caller feeds it at create, and when it adds
 *                 the devices of the slot
 *   KEEPER_UP     the slot has a keeper that takes orders.  Reply to MAKE
 *   KEEPER_NO     no keeper could be made.  Reply to MAKE
 *   KEEPER_LOST   the keeper takes no orders any more: it has died, it is stopped, or a send to it
 *                 failed.  If the keeper has a worker, the worker is dying.  KEEPER_GONE follows,
 *                 or no event at all.  UNREAD: the keeper had not read the order of the last
 *                 KILL_AT, so this order did not end the worker
 *   KEEPER_GONE   the keeper is gone, with every process that it had started.  UNFIT: the keeper
 *                 could not begin to work.  VAIN: it was stopped and has started no worker.  If the
 *                 slot has a worker, the worker is dead, too.  Then the drain precedes KEEPER_GONE
 *                 as it precedes EXITED
 *   SPAWNER_GONE  no keeper can be made any more.  The drain of every slot in LOST precedes it
 *
 * Worker (each event but BROKE has the slot's incarnation; if an event belongs to an earlier
 * worker, the core counts and drops it):
 *   START_NO      the keeper could not start a worker
 *   ANSWERED      the executed program has called gpud_init
 *   SETUP_OK      setup has succeeded, and the keeper has reported the start.  PASSED: the canary
 *                 has succeeded, too
 *   EXITED        the keeper has reaped the worker, and swept every process that the worker
 *                 started.  BY_US: the keeper's kill at a limit ended the worker.  PASSED, FAILED:
 *                 the result of its canary.  FAULT: the worker reported a sticky error of its
 *                 device.  SPOILT: the worker had overwritten its page.  The drain precedes EXITED:
 *                 the ends of ended tasks, and CAME_BACK for unclaimed tasks.  Every task that is
 *                 left was running
 *   SWEEPING      the worker is dead, and the sweep takes longer.  A host also feeds it before the
 *                 drain: then the end of the worker's last task orders no END
 *   SPARED        the task of a KILL_AT had ended in time, and the keeper has not killed the worker
 *   OVERDUE       the worker was stopped for stop_limit, and its keeper kills it
 *   STILL         YES: the worker is stopped or has ended, and must get no task.  NO: the worker
 *                 goes on
 *   BROKE         the worker's page, or a frame of it, has impossible content: the core kills it
 *
 * Tasks and limits:
 *   CAME_BACK     the worker had not claimed the task, and no longer can.  Reply to RECALL and
 *                 HOLD.  It also arrives without an order, and in a drain.  SPOILT: the worker
 *                 cannot have begun the task, but had overwritten its claim.  It may be this task
 *                 that makes workers overwrite their pages
 *   ROOM          the result arena of the slot has room for the results of this many tasks.  c=
 *                 has the number; 64 = no restriction, as before the first ROOM
 *   CLAIMED       the worker has the task.  Reply to RECALL
 *   RUNNING       reply to LOOK and HOLD, one for each running task.  at = when the soft limit of
 *                 the task expires
 *   LOOKED        ends the reply to LOOK.  at = when to read the cells again for tasks that do not
 *                 run
 *   HELD          ends the reply to HOLD: no task is left that could still begin
 *   CANCEL        the user cancels the task
 *
 * External work (each event concerns the present grant of the task):
 *   STARTED       the task runs, since `at`
 *   DECLINED      the caller returns the grant, which has not started.  It wants none for the task
 *                 before `at`
 *   PROGRESS      the task works: its stall limit begins anew
 *   ENDED         the task has ended, at `at`, and its devices are free.  It may have been given up
 *                 before, or may never have started
 *
 * Replies to orders:
 *   SURVIVED      to GIVE_UP: the worker is still there.  The drain precedes it
 *   UNSENT        to START, END: the send failed.  KEEPER_LOST or a kill is the consequence
 *   BEGUN         to MAKE, START, END, KILL, KILL_AT: the order was sent, at the time `now`
 *
 * Devices:
 *   DEVICE        how the device may be used now, and what happens to its workers.  DOUBT: a canary
 *                 precedes setup.  OUT: canaries bring the device back.  DEAD: only a reading can
 *                 bring it back.  Reply to JUDGE, and the result of readings
 *   PAUSE, DRAIN, RETURN, REMOVE   the user's request.  PAUSE: no task and no worker starts on the
 *                 device, and its workers stay.  RETURN ends PAUSE and DRAIN
 *   TRY           a canary is due on a device that is OUT
 *   MEMORY        the memory of the slot's devices is free again, or no reading can show it.  Reply
 *                 to READ_MEMORY
 *
 * Dispatcher:
 *   CLOSE         intake ends.  at = when the close limit expires.  LEAVE: as RUNNING, and external
 *                 work that has started is no task any more
 *   SOURCE        YES: a source feeds tasks.  Until NO follows, no close is complete
 *   TIME          the time of gpi_sched_due has arrived, and the caller has fed every fact that was
 *                 ready to read
 */
#define GPI_EVENT_MAP(X) \
    X(WANT, GPI_F_SLOT, "", 0, "") \
    X(KEEPER_UP, GPI_F_SLOT, "", 0, "") \
    X(KEEPER_NO, GPI_F_SLOT, "", 0, "") \
    X(KEEPER_LOST, GPI_F_SLOT | GPI_F_HOW, "plain unread", 0, "") \
    X(KEEPER_GONE, GPI_F_SLOT | GPI_F_HOW, "plain unfit vain", 0, "") \
    X(SPAWNER_GONE, 0, "", 0, "") \
    X(START_NO, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(ANSWERED, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(SETUP_OK, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "passed", 1, "") \
    X(EXITED, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "passed failed by_us fault spoilt", 1, \
      "") \
    X(SWEEPING, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(SPARED, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(OVERDUE, GPI_F_SLOT | GPI_F_INCARNATION, "", 0, "") \
    X(STILL, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "no yes", 0, "") \
    X(BROKE, GPI_F_SLOT, "", 0, "") \
    X(CAME_BACK, GPI_F_TASK | GPI_F_HOW, "plain spoilt", 0, "") \
    X(ROOM, GPI_F_SLOT | GPI_F_CELL, "", 0, "") \
    X(CLAIMED, GPI_F_TASK, "", 0, "") \
    X(RUNNING, GPI_F_SLOT | GPI_F_TASK | GPI_F_AT, "", 0, "") \
    X(LOOKED, GPI_F_SLOT | GPI_F_AT, "", 0, "") \
    X(HELD, GPI_F_SLOT, "", 0, "") \
    X(CANCEL, GPI_F_TASK | GPI_F_HOW, "soft hard", 0, "") \
    X(SURVIVED, GPI_F_SLOT, "", 0, "") \
    X(UNSENT, GPI_F_SLOT, "", 0, "") \
    X(BEGUN, GPI_F_SLOT, "", 0, "") \
    X(DEVICE, GPI_F_DEVICE | GPI_F_HOW | GPI_F_WHAT, "ok doubt out dead", 0, "none leave kill") \
    X(PAUSE, GPI_F_DEVICE, "", 0, "") \
    X(DRAIN, GPI_F_DEVICE, "", 0, "") \
    X(RETURN, GPI_F_DEVICE, "", 0, "") \
    X(REMOVE, GPI_F_DEVICE, "", 0, "") \
    X(TRY, GPI_F_DEVICE, "", 0, "") \
    X(MEMORY, GPI_F_SLOT, "", 0, "") \
    X(STARTED, GPI_F_TASK | GPI_F_AT, "", 0, "") \
    X(DECLINED, GPI_F_TASK | GPI_F_AT, "", 0, "") \
    X(PROGRESS, GPI_F_TASK, "", 0, "") \
    X(ENDED, GPI_F_TASK | GPI_F_HOW | GPI_F_AT, "success error crashed", 0, "") \
    X(CLOSE, GPI_F_HOW | GPI_F_AT, "all running now leave", 0, "") \
    X(SOURCE, GPI_F_HOW, "no yes", 0, "") \
    X(TIME, 0, "", 0, "")
#define GPI_X_EVENT(name, fields, how, bits, what) GPI_EV_##name,
enum gpi_sched_event_kind { GPI_EVENT_MAP(GPI_X_EVENT) GPI_EVENTS };
#undef GPI_X_EVENT

enum gpi_lost { GPI_LOST_PLAIN, GPI_LOST_UNREAD };
enum gpi_back { GPI_BACK_PLAIN, GPI_BACK_SPOILT };
enum gpi_gone { GPI_GONE_PLAIN, GPI_GONE_UNFIT, GPI_GONE_VAIN };
enum gpi_exited {
    GPI_EXITED_PASSED = 1, GPI_EXITED_FAILED = 2, GPI_EXITED_BY_US = 4, GPI_EXITED_FAULT = 8,
    GPI_EXITED_SPOILT = 16
};
enum gpi_may { GPI_MAY_OK, GPI_MAY_DOUBT, GPI_MAY_OUT, GPI_MAY_DEAD };
enum gpi_use { GPI_USE_NONE, GPI_USE_LEAVE, GPI_USE_KILL };
enum gpi_recall { GPI_RECALL_BACK, GPI_RECALL_END };
enum gpi_soft { GPI_CANCEL_SOFT, GPI_CANCEL_HARD };
enum gpi_ended { GPI_ENDED_SUCCESS, GPI_ENDED_ERROR, GPI_ENDED_CRASHED };
enum gpi_close { GPI_CLOSE_ALL, GPI_CLOSE_RUNNING, GPI_CLOSE_NOW, GPI_CLOSE_LEAVE };

/* ---- actions: the caller performs them, first in, first out ---- */

/* If the worker or task of an action is gone by then, the action has no effect and no reply. */

/* X(NAME, fields, words of `how`, whether these are bits, words of `what`)
 *
 *   MAKE         requests a keeper from the spawner.  Reply: BEGUN or KEEPER_NO; later KEEPER_UP or
 *                KEEPER_NO
 *   DISMISS      ends the keeper.  Later: KEEPER_GONE
 *   START        requests a worker from the keeper.  FIRST: a canary precedes the worker's setup.
 *                ONLY: the worker runs nothing but the canary.  Reply: BEGUN or UNSENT
 *   RECALL       takes an unclaimed task back.  BACK: for another worker.  END: the task is to end.
 *                Reply: CAME_BACK, CLAIMED, or the task's end
 *   LOOK         reads the cells.  Reply: ends, then RUNNING for each running task, then LOOKED
 *   HOLD         first takes back every unclaimed task.  Reply: ends, CAME_BACK for each task taken
 *                back, RUNNING for each running task, HELD
 *   ALARM        interrupts the running task, which is cancelled.  HARD: if the task goes on, the
 *                core kills its worker after the grace.  No reply
 *   KILL, KILL_AT   order the keeper to kill the worker.  KILL: now.  KILL_AT: at a time, unless
 *                the task has ended by then.  Reply: BEGUN or KEEPER_LOST
 *   END          orders the worker to run cleanup and exit.  Reply: BEGUN or UNSENT
 *   GIVE_UP      the kill limit has expired.  The reply is the drain, and SURVIVED.  If the host
 *                finds only now that the keeper hangs, it is KEEPER_LOST: the keeper is stopped,
 *                and its worker has ended or never started
 *   READ_MEMORY  watches the memory of the slot's devices.  Reply, at once or later: MEMORY
 *   JUDGE        reports to the health of the slot's devices.  Reply: DEVICE for each device that
 *                changed
 *   DROP_SPAWNER   the spawner does not reply: the host hangs up.  Reply: the drains, and
 *                SPAWNER_GONE
 *   SEAT         pooled: the slot, which has no worker, is for a worker of this class, and on no
 *                device but those of the SEAT_ON that follow, in their order
 *   SEAT_ON      see SEAT
 *   PROMISE      pooled: the waiting task starts by a time, or, with "never", has no such time any
 *                more.  how: the first promise, or why it is renewed.  Dropped if there are too
 *                many
 *   GRANT        external: the task may start, on no device but those of the GRANT_ON that follow,
 *                in their order.  c= has the variant of its request.  Reply, later: STARTED,
 *                DECLINED or ENDED
 *   GRANT_ON     see GRANT
 *   REVOKE       external: BACK: the grant is over, and must not start.  SOFT: the task is to end.
 *                HARD: it is to be killed, by a time.  Reply to SOFT and HARD, later: ENDED
 *   LIFE         the slot has entered a state
 *   NOTE         a fact for the user: the host writes the text.  If a kill ended the worker,
 *                the note has its reason
 */
#define GPI_ACTION_MAP(X) \
    X(MAKE, GPI_F_SLOT, "", 0, "") \
    X(DISMISS, GPI_F_SLOT, "", 0, "") \
    X(START, GPI_F_SLOT | GPI_F_INCARNATION | GPI_F_HOW, "plain first only", 0, "") \
    X(RECALL, GPI_F_SLOT | GPI_F_TASK | GPI_F_HOW, "back end", 0, "") \
    X(LOOK, GPI_F_SLOT, "", 0, "") \
    X(HOLD, GPI_F_SLOT, "", 0, "") \
    X(ALARM, GPI_F_SLOT | GPI_F_TASK | GPI_F_HOW, "soft hard", 0, "") \
    X(KILL, GPI_F_SLOT | GPI_F_HOW, GPI_WHY_WORDS, 0, "") \
    X(KILL_AT, GPI_F_SLOT | GPI_F_TASK | GPI_F_AT, "", 0, "") \
    X(END, GPI_F_SLOT, "", 0, "") \
    X(GIVE_UP, GPI_F_SLOT, "", 0, "") \
    X(READ_MEMORY, GPI_F_SLOT, "", 0, "") \
    X(JUDGE, GPI_F_SLOT | GPI_F_HOW, GPI_JUDGE_WORDS, 0, "") \
    X(DROP_SPAWNER, 0, "", 0, "") \
    X(SEAT, GPI_F_SLOT | GPI_F_CLASS, "", 0, "") \
    X(SEAT_ON, GPI_F_SLOT | GPI_F_DEVICE, "", 0, "") \
    X(PROMISE, GPI_F_TASK | GPI_F_HOW | GPI_F_AT, "first order device class workers", 0, "") \
    X(GRANT, GPI_F_TASK | GPI_F_INCARNATION | GPI_F_CELL, "", 0, "") \
    X(GRANT_ON, GPI_F_TASK | GPI_F_DEVICE, "", 0, "") \
    X(REVOKE, GPI_F_TASK | GPI_F_INCARNATION | GPI_F_HOW | GPI_F_WHAT | GPI_F_AT, \
      "soft hard back", 0, "limit stall cancel drain device close start") \
    X(LIFE, GPI_F_SLOT | GPI_F_HOW, GPI_LIFE_WORDS, 0, "") \
    X(NOTE, GPI_F_SLOT | GPI_F_DEVICE | GPI_F_HOW | GPI_F_WHAT, GPI_NOTE_WORDS, 0, \
      GPI_WHY_WORDS)
#define GPI_WHY_WORDS \
    "no setup limit cancel cleanup protocol close device stopped stall start"
#define GPI_JUDGE_WORDS "killed fault deaths passed failed survived"
#define GPI_NOTE_WORDS \
    "died setup_failed unmade died_idle given_up survived renewed drained removed"
#define GPI_LIFE_WORDS \
    "OFF WAIT BOOT SETUP UP LEAVE END DOOMED KILL SWEEP LOST BACKOFF PARKED FAILED STUCK STOPPED " \
    "REMOVED COOL"
#define GPI_X_ACTION(name, fields, how, bits, what) GPI_ACT_##name,
enum gpi_sched_action_kind { GPI_ACTION_MAP(GPI_X_ACTION) GPI_ACTIONS };
#undef GPI_X_ACTION

/* The reason why a worker is being killed. */
enum gpi_why {
    GPI_WHY_NO, GPI_WHY_SETUP, GPI_WHY_LIMIT, GPI_WHY_CANCEL, GPI_WHY_CLEANUP, GPI_WHY_PROTOCOL,
    GPI_WHY_CLOSE, GPI_WHY_DEVICE, GPI_WHY_STOPPED, /* by its keeper, at stop_limit */
    GPI_WHY_STALL, GPI_WHY_START /* of external work: it was granted in vain too often */
};
/* How and why a grant is revoked. */
enum gpi_revoke { GPI_REVOKE_SOFT, GPI_REVOKE_HARD, GPI_REVOKE_BACK };
enum gpi_revoke_why {
    GPI_REVOKE_LIMIT, GPI_REVOKE_STALL, GPI_REVOKE_CANCEL,
    GPI_REVOKE_DRAIN, /* its device or its class starts nothing any more */
    GPI_REVOKE_DEVICE, /* has failed */
    GPI_REVOKE_CLOSE,
    GPI_REVOKE_START /* it was not started in time */
};
enum gpi_start_kind { GPI_START_PLAIN, GPI_START_FIRST, GPI_START_ONLY };
enum gpi_judge {
    GPI_JUDGE_KILLED, GPI_JUDGE_FAULT, GPI_JUDGE_DEATHS, GPI_JUDGE_PASSED, GPI_JUDGE_FAILED,
    GPI_JUDGE_SURVIVED
};
enum gpi_sched_note {
    GPI_NOTE_DIED,           /* the worker has ended: precedes every other consequence */
    GPI_NOTE_SETUP_FAILED,   /* it had not passed setup, and the slot is charged for that */
    GPI_NOTE_UNMADE,         /* no keeper could be made, or no worker */
    GPI_NOTE_DIED_IDLE,      /* it had passed setup, and had no task */
    GPI_NOTE_GIVEN_UP,       /* the slot starts no worker any more */
    GPI_NOTE_SURVIVED,
    GPI_NOTE_RENEWED,        /* the core ends the worker for max_tasks */
    GPI_NOTE_DRAINED,        /* the device's last worker has ended */
    GPI_NOTE_REMOVED         /* the device's last slot has ended */
};

/* ---- the records ---- */

struct gpi_sched_event {
    uint64_t now; /* never smaller than that of the event before */
    uint64_t at;
    uint32_t kind; /* enum gpi_sched_event_kind */
    uint32_t slot, incarnation, task, device, cell, how, what, class;
};

struct gpi_sched_action {
    uint64_t at;
    uint32_t kind; /* enum gpi_sched_action_kind */
    uint32_t slot, incarnation, task, device, cell, how, what, class;
};

/* A task for a worker. */
struct gpi_sched_order {
    uint32_t slot, task, cell;
    bool alone; /* the worker must run the task alone, in no batch */
    bool last;  /* the worker gets no more tasks: max_tasks */
};

/* An attempt that has ended on its own. */
struct gpi_sched_attempt {
    uint32_t task;
    uint32_t outcome; /* SUCCESS, ERROR, TIMEOUT or CANCELLED, from its end record */
    uint32_t phase;   /* PROCESS; QUEUED if the worker found the task expired and did not run it */
    bool final;       /* no other attempt may follow: the result was invalid */
    uint64_t run;     /* ns that the call of the attempt took */
    uint64_t share;   /* the same, divided by the number of tasks in its batch */
};

/* How a task ended, or an attempt of it.  Ends do not use the ring, since a close may end all tasks
 * at once. */
struct gpi_sched_end {
    uint32_t task;
    bool again;       /* the attempt ended so, and another one follows */
    uint32_t outcome; /* enum gpud_outcome */
    uint32_t phase;   /* enum gpud_phase */
    uint32_t why;     /* enum gpi_why of the kill, if a kill ended the task */
    uint32_t attempts;
    bool held;        /* external: its devices are not free.  The record stays until ENDED */
};

/* ---- the plan: facts and actions of plan.h ---- */

#define GPI_SHARE_ALL 10000u        /* units of one device */
#define GPI_MEMORY_ALL UINT64_MAX   /* unknown: the device has nothing else beside it */
#define GPI_VARIANTS 4u
#define GPI_PLACES_ANY 0u           /* the set of places that has every device */

enum gpi_mode { GPI_MODE_BACKFILL, GPI_MODE_STRICT };

/* Which tasks may pass a head.  PROMISE and NAIVE are for the simulator: it compares them. */
enum gpi_passing { GPI_PASS_LEARNED, GPI_PASS_APART, GPI_PASS_PROMISE, GPI_PASS_NAIVE };

struct gpi_plan_settings {
    uint32_t tasks, shapes, classes, devices, runs; /* the most at a time */
    uint32_t place_sets;
    enum gpi_mode mode;
    enum gpi_passing passing;
    uint32_t cpus;                 /* CPU slots of the machine that tasks may have */
    uint64_t host_memory;          /* bytes of the machine's memory that tasks may have */
    uint32_t headroom;             /* 1/10000 of a device's memory that stays free */
    uint64_t least_headroom;       /* bytes */
    uint64_t foreign_memory;       /* R4, bytes */
    uint32_t foreign_load;         /* R4, 1/10000 of a device; 0: off */
};

struct gpi_plan_has {
    uint64_t memory;               /* bytes; 0: a device without memory of its own */
    uint32_t compute;              /* 100 times the major number plus the minor one */
};

/* One way to run: of the devices any that fit. */
struct gpi_request {
    uint32_t devices;              /* 0: CPU slots alone */
    uint32_t share;                /* of each; with several devices GPI_SHARE_ALL */
    uint32_t cpus;
    uint32_t compute;              /* at least */
    uint32_t places;               /* number of a set of devices; GPI_PLACES_ANY */
    uint64_t memory;               /* bytes of each device; GPI_MEMORY_ALL */
    uint64_t host_memory;          /* bytes */
};

static inline bool gpi_request_same(const struct gpi_request *a, const struct gpi_request *b)
{
    return a->devices == b->devices && a->share == b->share && a->cpus == b->cpus &&
           a->compute == b->compute && a->places == b->places && a->memory == b->memory &&
           a->host_memory == b->host_memory;
}

struct gpi_plan_task {
    uint32_t class;
    int32_t priority;
    uint64_t order;                /* its age: a smaller one is older */
    uint64_t limit;                /* ns that it may run; GPI_NEVER */
    const struct gpi_request *request; /* the variants, preferred first */
    uint32_t n_requests;
    bool stream;                   /* it is the first of a queue that the caller keeps: its worker
                                    * may be granted.  Not of an EXTERNAL class */
};

/* RESIDENT: its workers stay.  TRANSIENT: they go when another class wants their place.  EXTERNAL:
 * it has none; its tasks get devices, and the host runs them. */
enum gpi_residence { GPI_EXTERNAL, GPI_RESIDENT, GPI_TRANSIENT };

/* Times in ns. */
struct gpi_plan_class {
    enum gpi_residence residence;
    uint64_t grace;                /* after the limit of a task, until it is killed */
    struct gpi_request need[GPI_VARIANTS]; /* of its workers: RESIDENT */
    uint32_t n_needs;
    uint32_t min_workers, max_workers;
    bool pinned;                   /* its workers are never evicted */
    uint64_t min_residence;        /* a worker stays this long at least */
    uint64_t max_wait;             /* after it a cold task may evict a busy worker */
    uint64_t keep_alive;           /* an idle worker stays this long without work; GPI_NEVER */
    uint64_t boot, unload, run;    /* seeds: how long these take, until that is learned */
};

/* PAUSE starts nothing new; DRAIN also unloads the workers; RESUME ends both.  LOAD boots a worker
 * if the class has none.  UNLOAD unloads its workers.  PIN: they are never evicted; UNPIN: they may
 * be.  END: as DRAIN, for good, without min_workers; tasks that have not begun end as cancelled.
 * The caller submits none from then on.  REMOVE: it has no task, no worker, and no seat is stuck
 * with one of it; its number may be used again. */
enum gpi_plan_class_what {
    GPI_CLASS_PAUSE, GPI_CLASS_RESUME, GPI_CLASS_DRAIN, GPI_CLASS_LOAD, GPI_CLASS_UNLOAD,
    GPI_CLASS_PIN, GPI_CLASS_UNPIN, GPI_CLASS_END, GPI_CLASS_REMOVE
};

/*
 * RUN      the task starts on the devices of the action, as its variant `what`; in the worker, or
 *          without one (GPI_NOWHERE).  `how`: enum gpi_plan_run
 * REVOKE   of a granted run, once, even in the decision that has granted it: the caller starts no
 *          further task in it, and takes back those that have not begun.  They are part of the
 *          queue again, so the stream task is the oldest of all.  When the tasks that have begun
 *          have ended, the caller feeds gpi_plan_end
 * PROMISE  the blocked task starts by `at`; `how` is the reason
 * BOOT     a worker of the class starts on the devices
 * DRAIN    the worker takes nothing new, and is unloaded after its task.  A granted run is revoked
 *          by it
 * UNLOAD   the worker, which has no task, ends; a booting one, too
 * HOPELESS no device that is left could ever hold the task: the caller withdraws it     [R8]
 */
enum gpi_plan_action_kind {
    GPI_PLAN_RUN, GPI_PLAN_PROMISE, GPI_PLAN_BOOT, GPI_PLAN_DRAIN, GPI_PLAN_UNLOAD,
    GPI_PLAN_HOPELESS, GPI_PLAN_REVOKE
};

/* ONE: the run is this task alone.  GRANT: the caller may start further tasks of the class in the
 * worker, without a decision.                                                           [R1] */
enum gpi_plan_run { GPI_RUN_ONE, GPI_RUN_GRANT };

/* The first promise of a task, or why it is renewed.                                    [R3] */
enum gpi_promise { GPI_PROMISE_FIRST, GPI_PROMISE_ORDER, GPI_PROMISE_DEVICE, GPI_PROMISE_CLASS,
    GPI_PROMISE_WORKERS };

struct gpi_plan_action {
    uint32_t kind;
    uint32_t task, worker, class;
    uint32_t run;                  /* the number of the worker, or of the run without one */
    uint32_t how, what;
    uint64_t at;
    struct gpi_request need;       /* of the worker */
    uint32_t n_devices;
    const uint16_t *device;        /* until the task has ended, or the worker is gone */
};

/* PAUSED: nothing new starts there.  DRAINED: its workers leave, too.  OUT: it is broken or lost
 * for now, and the caller ends its tasks and workers.  GONE: it never returns.           [R8] */
enum gpi_plan_may {
    GPI_PLAN_IN, GPI_PLAN_PAUSED, GPI_PLAN_DRAINED, GPI_PLAN_OUT, GPI_PLAN_GONE
};

/* The reasons why a task does not start.  `other` is a task or a class.  From `tasks` of the
 * settings on it is no task: class `other` - `tasks` loads a worker that no task waits for. [S9] */
enum gpi_plan_why {
    GPI_REASON_PASSED_OVER_BY, /* an older task comes first, of its shape or in STRICT mode: task */
    GPI_REASON_MEMORY,         /* of the device or (device GPI_NOWHERE) of the machine: bytes */
    GPI_REASON_SHARE,          /* 1/10000 */
    GPI_REASON_CPUS,           /* slots */
    GPI_REASON_HEAD_HOLDS,     /* the device is kept for an older task, which has a promise: task */
    GPI_REASON_DRAINED, GPI_REASON_PAUSED, GPI_REASON_FAULT, /* state of the device or the class;
                                * FAULT of a class: until it may boot again */
    GPI_REASON_FOREIGN,        /* memory or use by foreign processes: bytes or 1/10000 */
    GPI_REASON_MIN_RESIDENCE,  /* a worker in its way is not ripe: class, until */
    GPI_REASON_MAX_WAIT,       /* a worker in its way has work: class, until */
    GPI_REASON_PINNED,         /* a worker in its way is pinned, or min_workers are left: class */
    GPI_REASON_SEATS,          /* max_workers of its class, or runs of the plan */
    GPI_REASON_BOOTING,        /* its worker boots, or one in its way: class, until, by p50 */
    GPI_REASON_UNLOADING,      /* a worker in its way leaves: class */
    GPI_REASON_BUSY,           /* its worker has a task that ends sooner than a boot would: task;
                                * other GPI_NOWHERE: its class boots none before `until`, and a
                                * boot takes `have` ns */
    GPI_REASON_OCCUPIED,       /* a worker in its way goes for another class only: class */
    GPI_REASON_NEVER           /* the device could never hold it: have, need; other: gpi_lack */
};

/* The lack of a device, or of the machine, for a request. */
enum gpi_lack {
    GPI_LACKS_NOTHING, GPI_LACKS_MEMORY, GPI_LACKS_COMPUTE,
    GPI_LACKS_PLACE,           /* the device is none of the set: need is its number */
    GPI_LACKS_CPUS,
    GPI_LACKS_DEVICES          /* have: devices that could hold it; need: its devices */
};

struct gpi_plan_reason {
    uint32_t device;               /* GPI_NOWHERE: the machine, or the class */
    uint32_t variant;
    uint32_t kind;                 /* enum gpi_plan_why */
    uint32_t other;
    uint64_t have, need, until;    /* until: GPI_NEVER if unknown */
};

#endif
