# SPDX-License-Identifier: MIT
"""Faults in the plan of lib/sched: a matrix of the rules R1-R9 and the guarantees S1-S9.

Each id has two mutants at least, each one changed line of the rule's function.  The test of an id
is red only for an objection of that id.  `python3 tests/sabotage/run.py plan` prints the matrix.
"""

from .entry import Sabotage

SCHED = "lib/sched/"


def mutant(rule, name, file, old, new, test=None):
    return Sabotage(f"plan {rule}: {name}", SCHED + file, old, new, test or f"sched/plans.{rule}")


SABOTAGES = [
    # ---- R1: order ----
    mutant("R1", "a shape passes in STRICT mode", "reserve.c",
           "        if (first_of(p, shape, gpi_lowest_bit(left)) != shape)\n"
           "            return 0;\n",
           "        if (first_of(p, shape, gpi_lowest_bit(left)) == GPI_NONE)\n"
           "            return 0;\n"),
    mutant("R1", "a task that returns is the last of its shape", "shape.c",
           "    while (left != GPI_NONE && p->task[left].order > t->order)\n",
           "    while (left != GPI_NONE && p->task[left].order > GPI_NEVER)\n"),
    mutant("R1", "grant: each stream task is granted", "grant.c",
           "gpi_revoke_may_grant(p, r, shape) && !gpi_evict_is_due(p, run));\n",
           "!gpi_evict_is_due(p, run));\n"),
    mutant("R1", "grant: a shape that comes revokes nothing", "shape.c",
           "    p->doubted |= bits & GPI_BITS_HEADED;\n",
           "    p->doubted |= bits & GPI_BIT_HOST;\n"),
    mutant("R1", "grant: tasks of its own queue revoke it", "revoke.c",
           "(!s->loads && !p->task[s->head].stream);\n",
           "!s->loads;\n"),
    mutant("R1", "grant: tasks of its class with requests of their own do not revoke it", "revoke.c",
           "(!s->loads && !p->task[s->head].stream);\n",
           "(p->n_gone && !p->task[s->head].stream);\n"),
    mutant("R1", "grant: a paused device revokes nothing", "revoke.c",
           "        off |= p->device[r->device[i]].may != GPI_PLAN_IN;\n",
           "        off |= p->device[r->device[i]].may == GPI_PLAN_GONE;\n"),
    mutant("R1", "grant: a worker that is to go is granted", "grant.c",
           "gpi_revoke_may_grant(p, r, shape) && !gpi_evict_is_due(p, run));\n",
           "gpi_revoke_may_grant(p, r, shape) && run != GPI_NONE);\n"),
    mutant("R1", "grant: an idle worker in the way counts as one that is to go", "evict.c",
           "            is_in |= is_victim(&w, run);\n",
           "            is_in |= w.n != 0;\n"),
    # ---- R2: heads, and the tasks that pass them ----
    mutant("R2", "a task that ends too late passes", "reserve.c",
           "    return takes <= longest_gap(p, head) && takes <= find_gap(p, head);\n",
           "    return takes >= find_gap(p, head);\n"),
    mutant("R2", "every kind is open", "reserve.c",
           "        if (head == shape || passed || waits_for_worker(p, head, kind))\n",
           "        if (head != shape || !passed)\n"),
    mutant("R2", "what a head leaves is open to any shape", "reserve.c",
           "    return next == GPI_NONE || !gpi_shape_precedes(p, next, shape);\n",
           "    return next != GPI_NONE;\n"),
    # ---- R3: promises ----
    mutant("R3", "a promise is the earliest plausible time", "reserve.c",
           "which == BY_LIMIT ? &k->end : &k->plausible",
           "which != BY_LIMIT ? &k->end : &k->plausible"),
    mutant("R3", "a promise counts on devices of other heads", "reserve.c",
           "        if (gpi_shape_head(p, gpi_lowest_bit(left)) == shape)\n"
           "            kinds |= left & -left;\n",
           "        if (gpi_shape_head(p, gpi_lowest_bit(left)) != GPI_NONE)\n"
           "            kinds |= left & -left;\n"),
    mutant("R3", "a promise is renewed for another reason", "reserve.c",
           "        if (unsure >> reasons[i] & 1)\n", "        if (!(unsure >> reasons[i] & 1))\n"),
    mutant("R3", "grant: a promise counts on its limit", "revoke.c",
           "    r->end_by = GPI_NEVER;\n", "    r->plausible = 0;\n"),
    mutant("R3", "runs: a promise counts on a run that is not free", "reserve.c",
           "i < s->n_requests && p->free_run != GPI_NONE; i++) {\n",
           "i < s->n_requests; i++) {\n"),
    # ---- R4: fit ----
    mutant("R4", "the memory of foreign processes counts as free", "memory.c",
           "    const uint64_t kept = headroom(p, d->has.memory) + d->foreign;\n",
           "    const uint64_t kept = headroom(p, d->has.memory);\n"),
    mutant("R4", "a busy device counts as quiet", "memory.c",
           "    return d->foreign <= p->set.foreign_memory &&\n",
           "    return d->foreign <= GPI_NEVER &&\n"),
    mutant("R4", "compute capability is ignored", "memory.c",
           "    return d->has.compute >= r->compute && "
           "gpi_memory_is_place(p, r->places, device) &&\n"
           "           !is_shut(d) &&\n",
           "    return gpi_memory_is_place(p, r->places, device) && !is_shut(d) &&\n"),
    # ---- R5: place ----
    mutant("R5", "a class wants a worker for each task", "shape.c",
           "queued * (c->run.p50 / 1024) <= workers * (c->boot.p50 / 1024)",
           "queued * (c->run.p50 / 1024) <= workers"),
    mutant("R5", "a boot takes the memory of the head", "grant.c",
           "        both.memory += beside;\n", "        both.memory += beside / 2;\n"),
    mutant("R5", "a class has more than max_workers", "shape.c",
           "p->now >= c->again && workers < c->set.max_workers;",
           "p->now >= c->again && workers <= c->set.max_workers;"),
    mutant("R5", "a class has more workers on a device than shares", "memory.c",
           "        if (is_alike(p, w, class, r) && !is_among(but, i / GPI_RUN_DEVICES))\n"
           "            share += w->need.share;\n",
           "        if (is_alike(p, w, class, r) && !is_among(but, i / GPI_RUN_DEVICES))\n"
           "            share += w->need.share / 2;\n"),
    mutant("R5", "a device with other workers is of the same kind", "memory.c",
           "k->workers == d->workers && ", ""),
    mutant("R5", "a worker that boots takes no task", "leave.c",
           "    p->class[r->class].n_booting += r->work == GPI_WORK_BOOT;\n",
           "    p->class[r->class].n_booting += 0;\n"),
    mutant("R5", "the queue of the caller counts as one task", "grant.c",
           "    c->queued += n - c->behind;\n    c->behind = n;\n",
           "    c->queued += (n != 0) - c->behind;\n    c->behind = n != 0;\n",
           test="sched/plans.S7"),  # too few workers boot
    # ---- R6: eviction ----
    mutant("R6", "a pinned worker goes", "evict.c",
           "    if (c->set.pinned || c->workers", "    if (c->workers"),
    mutant("R6", "keep_alive leaves fewer than min_workers", "leave.c",
           "           c->workers - c->leaving > c->set.min_workers;\n",
           "           c->workers - c->leaving > 0;\n"),
    mutant("R6", "a worker goes before min_residence", "evict.c",
           "gpi_time_add(r->since, c->set.min_residence);", "gpi_time_add(r->since, 0);"),
    mutant("R6", "a worker with work goes before max_wait", "evict.c",
           "    return gpi_time_add(since * GPI_MS, c->set.max_wait);\n",
           "    return gpi_time_add(since * GPI_MS, c->set.max_wait / 2);\n"),
    mutant("R6", "keep_alive does not end", "leave.c",
           "            gpi_heap_set(&p->keeps, i, gpi_time_add(r->used, r->keep));\n",
           "            gpi_heap_set(&p->keeps, i, GPI_NEVER);\n"),
    mutant("R6", "grant: a granted worker drains at once", "evict.c",
           "            awaits |= r->ahead;\n", "            awaits |= r->awaited && !r->ahead;\n"),
    mutant("R6", "grant: no shape is examined when the older tasks are known", "revoke.c",
           "    if (r->awaited)\n        gpi_shape_evict_again(p);\n",
           "    if (r->awaited && !r->ahead)\n        gpi_shape_evict_again(p);\n"),
    mutant("R6", "runs: a shape that lacks a run evicts no worker", "evict.c",
           "    if (p->shape[shape].lacks_run)\n",
           "    if (p->shape[shape].lacks_run && !p->has_workers)\n"),
    mutant("R6", "runs: two workers go for one run", "evict.c",
           "    if (f.unloading)\n", "    if (f.unloading > 1)\n"),
    mutant("R6", "runs: an older task of the victim's class takes the run", "evict.c",
           "        if (p->class[s->class].paused || (s->class != class && !s->lacks_run))\n",
           "        if (p->class[s->class].paused || s->class != GPI_NONE)\n"),
    # ---- R7: boots ----
    mutant("R7", "a boot goes on without a task", "leave.c",
           "    while (c->booting != GPI_NONE && (c->queued == 0 || c->paused) &&\n",
           "    while (c->booting != GPI_NONE && (c->queued == 0 && c->paused) &&\n"),
    mutant("R7", "a boot ends while tasks wait", "leave.c",
           "    while (c->booting != GPI_NONE && (c->queued == 0 || c->paused) &&\n",
           "    while (c->booting != GPI_NONE && (c->queued != 1 || c->paused) &&\n"),
    # ---- R8: pause, drain, loss ----
    mutant("R8", "a drained device keeps its workers", "plan.c",
           "    if (may == GPI_PLAN_DRAINED)\n", "    if (may == GPI_PLAN_GONE)\n"),
    mutant("R8", "a hopeless task waits", "grant.c",
           "    if (p->shape[shape].hopeless && !p->shape[shape].told) {\n",
           "    if (p->shape[shape].hopeless && p->shape[shape].told) {\n"),
    # ---- R9: refused at the call ----
    mutant("R9", "headroom is ignored at the call", "memory.c",
           "    return d->has.memory - headroom(p, d->has.memory);\n",
           "    return d->has.memory;\n"),
    mutant("R9", "a device that is gone counts at the call", "memory.c",
           "    return p->device[device].may != GPI_PLAN_GONE &&\n", "    return true &&\n"),
    # ---- S1: nothing is in use twice ----
    mutant("S1", "a share is not counted", "memory.c",
           "        d->share += r->need.share;\n", "        d->share += r->need.share / 2;\n"),
    mutant("S1", "memory is not reserved", "memory.c",
           "        d->reserved += bytes_of(r, at);\n",
           "        d->reserved += bytes_of(r, at) / 2;\n"),
    mutant("S1", "CPU slots are not counted", "memory.c",
           "        p->cpus_used += r->need.cpus;\n",
           "        p->cpus_used += r->need.cpus / 2;\n"),
    # ---- S2: heads start by their promise; with APART as without the tasks that passed ----
    mutant("S2", "APART lets short tasks pass", "reserve.c",
           "    if (p->set.passing == GPI_PASS_APART || until == GPI_NEVER)\n",
           "    if (until == GPI_NEVER)\n", "sched/twins.S2"),
    mutant("S2", "CPU slots are not kept for heads", "reserve.c",
           "    kept->cpus += cpus;\n", "    kept->cpus += cpus / 8;\n", "sched/twins.S2"),
    # ---- S3: no task starves ----
    mutant("S3", "every task passes", "reserve.c",
           "    if (p->set.passing == GPI_PASS_NAIVE)\n        return GPI_NEVER;\n",
           "    if (p->set.passing != GPI_PASS_APART)\n        return GPI_NEVER;\n",
           "sched/twins.S3"),
    mutant("S3", "a cold task never evicts a busy worker", "evict.c",
           "    return gpi_time_add(since * GPI_MS, c->set.max_wait);\n",
           "    return GPI_NEVER;\n", "sched/traces.busy_client_keeps_draining_alive"),
    # ---- S4: DRAIN is one-way ----
    mutant("S4", "a draining worker takes a task again", "grant.c",
           "    if (r->work == GPI_WORK_BUSY) {\n        list_idle(p, run);\n",
           "    if (r->work != GPI_WORK_IDLE) {\n        list_idle(p, run);\n"),
    mutant("S4", "a worker that drains is only busy", "leave.c",
           "    r->work = drains ? GPI_WORK_DRAIN : GPI_WORK_UNLOAD;\n",
           "    r->work = drains ? GPI_WORK_BUSY : GPI_WORK_UNLOAD;\n"),
    mutant("S4", "a worker that leaves takes a task", "grant.c",
           "    gpi_leave_worker(p, worker);\n    examine_class(p, r->class);\n",
           "    examine_class(p, r->class);\n"),
    mutant("S4", "a worker that leaves gets an UNLOAD after its task", "grant.c",
           "    if (!r->leaves)\n        gpi_actions_put(p, GPI_PLAN_UNLOAD, run, 0, p->now);\n",
           "    gpi_actions_put(p, GPI_PLAN_UNLOAD, run, 0, p->now);\n"),
    # ---- S5: nothing is examined without a change ----
    mutant("S5", "a decision ends while a shape is new", "plan.c",
           "    } while (p->changed || p->passable || p->n_fresh);\n",
           "    } while (p->changed || p->passable);\n"),
    mutant("S5", "a decision ends while a shape may pass", "plan.c",
           "    } while (p->changed || p->passable || p->n_fresh);\n",
           "    } while (p->changed || p->n_fresh);\n"),
    # ---- S6: the same facts lead to the same actions ----
    mutant("S6", "a pick depends on the picks of all plans", "memory.c",
           "        if (fits(p, i, r))\n",
           "        static uint32_t n_picks;\n"
           "        if (fits(p, i, r) && (++n_picks % 97 || n))\n"),
    mutant("S6", "the times of all plans are remembered in turn", "learn.c",
           "    s->last[s->at] = time;\n",
           "    static uint32_t n_times;\n    s->last[n_times++ % GPI_LEARN] = time;\n"),
    # ---- S7: a task that fits starts ----
    mutant("S7", "no task passes", "plan.c",
           "        if (shape != GPI_NONE && gpi_grant_try(p, shape))\n            return true;\n",
           "        if (shape == head && gpi_grant_try(p, shape))\n            return true;\n"),
    mutant("S7", "a release changes nothing", "memory.c",
           "    return GPI_BIT_KIND(d->kind);\n", "    return 0 * GPI_BIT_KIND(d->kind);\n"),
    # ---- S8: a class that fails blocks no other ----
    mutant("S8", "a worker that is gone leaves its memory reserved", "grant.c",
           "    p->changed |= gpi_memory_release(p, worker, GPI_HOLD);\n",
           "    if (r->work != GPI_WORK_BOOT)\n"
           "        p->changed |= gpi_memory_release(p, worker, GPI_HOLD);\n",
           "sched/traces.boot_fails_three_times"),
    mutant("S8", "a class whose boot failed boots at once again", "grant.c",
           "    c->again = again;\n",
           "    c->again = again * 0;\n", "sched/traces.boot_fails_three_times"),
    # ---- S9: explain agrees with the decision ----
    mutant("S9", "a head holds no device", "explain_device.c",
           "    } else if (a->holder[d->kind] != GPI_NONE && !has_both(a, device, r)) {\n",
           "    } else if (a->holder[d->kind] == GPI_UNKNOWN) {\n", "sched/explains.S9"),
    mutant("S9", "a worker that has to stay is not ripe", "evict.c",
           "        return (struct gpi_obstacle){ GPI_REASON_PINNED, keeps, GPI_NEVER };\n",
           "        return (struct gpi_obstacle){ GPI_REASON_MIN_RESIDENCE, keeps, p->now };\n",
           "sched/explains.S9"),
    mutant("S9", "a task is late too soon", "explain.c",
           "    row.until = late_at(a, class);\n",
           "    row.until = a->p->now;\n", "sched/explains.S9"),
    mutant("S9", "devices that could hold an unreachable variant count", "explain_device.c",
           "        if (reaches)\n", "        if (reaches || r->devices)\n", "sched/explains.S9"),
]
