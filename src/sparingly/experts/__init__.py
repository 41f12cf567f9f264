"""Who is asked: experts with a price, who know the truth or may be wrong; people, and machines that can be called."""

from sparingly.experts.expert import Answers, Expert, Person, check_answers
from sparingly.experts.local_experts import FunctionExpert, RecordedExpert
from sparingly.experts.machine_expert import CallLimits, ExpertReply, Inquiry, MachineExpert

__all__ = [
    "Answers",
    "CallLimits",
    "Expert",
    "ExpertReply",
    "FunctionExpert",
    "Inquiry",
    "MachineExpert",
    "Person",
    "RecordedExpert",
    "check_answers",
]
