"""What is exported is read by those for whom it is made: TRL, verl, verifiers, Harbor, datasets."""
