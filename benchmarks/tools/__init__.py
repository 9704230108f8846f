"""`make bench-tools`: searches beside ripgrep and find, the system prompt, and what a sandbox costs a command."""
