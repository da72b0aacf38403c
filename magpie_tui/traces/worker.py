"""A reader process: takes chunks from shared memory, sends back their columns.

Started as ``python -m magpie_tui.traces.worker``; it ends when its standard input closes, so it never outlives its
starter.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import struct
import sys
from typing import BinaryIO

from magpie_tui.traces.decode import ChunkDecoder, MalformedChunkError

REQUEST = struct.Struct("<QQQI")
"""Number of the file, offset and length in the shared memory, length of the separator (0: none) that follows.

In the memory stands a JSON list of events.
"""
REPLY = struct.Struct("<Q")
"""Length of the pickled answer that follows."""


def serve(memory: mmap.mmap, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more."""
    decoder = ChunkDecoder()
    current_file = 0
    view = memoryview(memory)
    while len(head := requests.read(REQUEST.size)) == REQUEST.size:
        file, offset, length, separator_length = REQUEST.unpack(head)
        if file != current_file:
            decoder, current_file = ChunkDecoder(), file
        separator = requests.read(separator_length) or None
        answer: object
        try:
            answer = decoder.decode_list(view[offset : offset + length], separator)
        except MalformedChunkError:
            answer = None
        payload = pickle.dumps(answer, protocol=5)
        replies.write(REPLY.pack(len(payload)))
        replies.write(payload)
        replies.flush()


def main() -> None:
    """Entry point: the number of the shared file descriptor and its size are the two arguments."""
    gc.disable()
    descriptor, size = int(sys.argv[1]), int(sys.argv[2])
    memory = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
    os.close(descriptor)
    with contextlib.suppress(BrokenPipeError):
        serve(memory, sys.stdin.buffer, sys.stdout.buffer)
    # The starter may be gone: nothing is left to be said to it.
    os._exit(0)


if __name__ == "__main__":
    main()
