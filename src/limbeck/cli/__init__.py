"""The command line: thin, and quick to start. Heavy imports happen inside the commands."""
