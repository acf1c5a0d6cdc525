"""Pictures drawn from real material: what may be drawn (figures.py), how (canvas.py, plots.py, graphs.py, cells.py), and what
can be read off it (asked.py)."""
