"""The author kit's side that runs submissions: controls, the plugin for pytest, and scaffolds' conformance."""
