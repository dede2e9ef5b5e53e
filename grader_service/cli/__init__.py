"""The command line: reads options, calls the flow, prints; decides nothing."""
