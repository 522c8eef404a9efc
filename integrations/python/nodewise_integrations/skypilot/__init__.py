"""SkyPilot: how long a task takes on each of its candidates, and which offer to launch it on."""

from nodewise_integrations.skypilot.estimates import time_estimator
from nodewise_integrations.skypilot.offers import ChosenOffer, Spot, choose_offer

__all__ = ["ChosenOffer", "Spot", "choose_offer", "time_estimator"]
