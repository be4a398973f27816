"""What the program does without calling an operator, and what it calls that is written as one call."""
