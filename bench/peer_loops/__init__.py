"""One loop per peer: each runs in the peer's own environment, is told `go`, grades once, and answers with seconds."""
