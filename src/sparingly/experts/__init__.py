"""Who is asked: experts with a price, who know the truth or may be wrong."""

from sparingly.experts.expert import Answers, Expert, check_answers

__all__ = ["Answers", "Expert", "check_answers"]
