"""The task types, one file each: `capacity`, `draft` and a `register(TaskType(...))`. Each says at its top why its reward is unarguable."""
