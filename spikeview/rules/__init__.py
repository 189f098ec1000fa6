"""The triage table (RULES) and the checks on the whole run (CHECKS)."""
