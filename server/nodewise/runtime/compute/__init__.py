"""Where long work is done: processes of a pool, or threads of this one."""
