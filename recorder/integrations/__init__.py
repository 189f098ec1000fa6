"""The recorder in the loops of frameworks: one module for each, which needs that framework and says so."""
