"""What every backend of the sandbox promises, asked of each of them."""
