"""From the bytes that were sent to a folder that a pod can run: the only place where the host opens them.

Archives and notebooks are read by a child process with memory and time limits (`worker`), since their parsers see
hostile bytes; the parent checks what the child says as it would check a guest.
"""
