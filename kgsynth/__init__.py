"""kgsynth: grow a concept DAG, synthesize tasks with verifiable rewards from it."""

__version__ = "0.1.0"
