"""Measure a training job's throughput while it trains, as a row of a measurements table or of a profile.

Plain loops use `StepMeter`. The modules `lightning`, `transformers`, `deepspeed` and `torchtitan` of this package
connect it to these frameworks; no other module imports a framework.
"""

from nodewise_client.callbacks._meter import StepMeter

__all__ = ["StepMeter"]
