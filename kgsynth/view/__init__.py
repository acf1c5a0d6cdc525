"""`kgsynth view`: the graph in a web page, served on this machine alone, read and never written.

layout.py     where every concept goes, computed once per version of the graph
answers.py    what the page asks of a store, as JSON
libraries.py  the two JavaScript libraries that draw it
server.py     HTTP on the loopback interface
command.py    the command line
assets/       the page: one HTML file, one style sheet, a few ES modules
"""
