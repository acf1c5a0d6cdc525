"""What `kill_growers.py` is made of.

world.py    a taxonomy that is served, and the recipe that grows it through the product's own command
killing.py  the command, its workers, and how they are killed
checks.py   what is counted afterwards
"""
