"""This machine: GPUs, tools, host, disk, containers and ports, read without starting any work on them.

What cannot be read is ``None`` with the reason beside it. A machine without a GPU is a normal answer.
"""
