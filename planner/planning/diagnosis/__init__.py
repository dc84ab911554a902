"""`moeplan topology check`: is the fabric good enough, what is wrong with the machine, what does it cost."""

from planner.planning.diagnosis.cost import Fault
from planner.planning.diagnosis.fabric import GOOD_ENOUGH, FabricVerdict, Reading
from planner.planning.diagnosis.machine import Diagnosis, diagnose
from planner.planning.diagnosis.sentences import sentence

__all__ = ["GOOD_ENOUGH", "Diagnosis", "FabricVerdict", "Fault", "Reading", "diagnose", "sentence"]
