"""How fast a graph is, held against loaders of ours: arms, blocks, proof of what was delivered, and the decision."""
