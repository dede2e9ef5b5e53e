"""How soon a silent connection to PostgreSQL is given up."""

KEEPALIVE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Options of each connection; seconds, and milliseconds at last. A host that vanished ends no connection: within
a minute the kernel of this one does, whatever is waited for. It ends no statement that only takes long."""
