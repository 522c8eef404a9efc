"""Jobs to simulate: Gavel's traces, Pollux' workloads, logs of clusters, tables of our own, and jobs drawn by laws.

Readers take text streams; what is wrong in one is told with its line and column. Nothing here knows the service:
whoever reads jobs sends them, or hands them to a simulator.
"""

from nodewise_job_traces.faults import JobsFileError
from nodewise_job_traces.jobs import Curve, Job
from nodewise_job_traces.logs import LeftOut, Reason

__all__ = ["Curve", "Job", "JobsFileError", "LeftOut", "Reason"]
