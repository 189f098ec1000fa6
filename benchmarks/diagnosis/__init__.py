"""How right the diagnosis is: a labelled corpus of faults and healthy runs that real loops record, and its score."""
