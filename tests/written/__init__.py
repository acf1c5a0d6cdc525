"""A scripted batch of model-written tasks, good and bad in known numbers, and the model that wrote, solves and judges them."""
