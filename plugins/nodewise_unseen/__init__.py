"""Step times of models that never ran, from FLOPs, tensors, activations and family; the estimator `unseen` over them.

`learn_steps` learns from runs of one worker (`runs_of` finds them in profiles, `shipped_runs` are a published table's);
its law predicts any number of architectures on a device at once and says which of them it refuses. `learn_laws` lays
beside it the law of the runs that tell more. Pure functions.
"""
