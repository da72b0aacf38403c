"""What runs in the children: standard library and PyTorch only, under whatever interpreter the config names.

Nothing here imports the rest of the program, and the program imports nothing of what a kernel's file holds. Requests
and answers travel over a socket that the parent opened; tensors travel in files that the parent named. What a kernel
prints is kept in a log and means nothing.
"""
