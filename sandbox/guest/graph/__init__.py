"""Serialized DALI graphs: read, judged by an allow-list, edited and written again, without DALI and without protobuf.

Field numbers are those of the descriptor inside DALI 2.4's library; see `docs/carried-graphs.md`.
"""
