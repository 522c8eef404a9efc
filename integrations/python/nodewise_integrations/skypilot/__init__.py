"""SkyPilot: estimated run times of a task on its candidates, and the choice of an offer."""

from nodewise_integrations.skypilot.estimates import time_estimator
from nodewise_integrations.skypilot.offers import ChosenOffer, Spot, choose_offer

__all__ = ["ChosenOffer", "Spot", "choose_offer", "time_estimator"]
