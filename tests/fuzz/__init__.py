"""Everything on the host that reads bytes which a learner or a stranger made, and machines that make such bytes."""
