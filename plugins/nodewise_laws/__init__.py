"""Laws of distributed training: the mathematics that Nodewise's estimators share.

Pure functions of numbers and arrays, in seconds, customers and rates per second. They read nothing,
remember nothing that changes an answer, and depend on NumPy, SciPy and numba alone.
"""

from nodewise_laws.barrier_backup import *
from nodewise_laws.barrier_queue import *
from nodewise_laws.bounds import *
from nodewise_laws.kth_order_statistic import *
from nodewise_laws.linearizer import *
from nodewise_laws.load_dependent import *
from nodewise_laws.multiclass import *
from nodewise_laws.multiclass_mva import *
from nodewise_laws.mva import *
from nodewise_laws.order_statistics import *
from nodewise_laws.random_effects import *
from nodewise_laws.staleness import *
