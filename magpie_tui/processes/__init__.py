"""Process trees: start one in its own session, watch it, stop exactly it, keep its output in files, tail them.

Linux only: containment rests on ``PR_SET_CHILD_SUBREAPER``, ``/proc`` and, where the kernel has them, pidfds.
``procfs``, ``syscalls``, ``spawn``, ``keeper``, ``frames`` and ``guard`` are imported by tiny helper processes that
are started for every child, so they use the cheapest part of the standard library only.
"""
