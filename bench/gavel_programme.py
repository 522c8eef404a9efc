"""Gavel's max-min programme as it is published (Narayanan et al., OSDI'20), with cvxpy and ECOS.

``python gavel_programme.py INSTANCE.npz REPEATS`` prints the least seconds and the optimum. The instance holds
``values`` and ``taken``, both (jobs, pools), and ``sizes`` (pools).
"""

import json
import sys
import time

import cvxpy as cp
import numpy as np

instance = np.load(sys.argv[1])
values, taken, sizes = instance["values"], instance["taken"], instance["sizes"]
least_s, optimum = float("inf"), 0.0
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    shares = cp.Variable(values.shape)
    limits = [shares >= 0, cp.sum(cp.multiply(taken, shares), axis=0) <= sizes, cp.sum(shares, axis=1) <= 1]
    problem = cp.Problem(cp.Maximize(cp.min(cp.sum(cp.multiply(values, shares), axis=1))), limits)
    optimum = float(problem.solve(solver="ECOS"))
    least_s = min(least_s, time.perf_counter() - started)
print(json.dumps({"seconds": least_s, "optimum": optimum}))
