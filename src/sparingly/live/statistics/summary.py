"""How an agent is doing, in words."""

from __future__ import annotations

from sparingly.live.tickets.ticket_records import Statistics


def summary(found: Statistics) -> list[str]:
    """How an agent is doing, line by line."""
    lines = [
        f"{found.observations} observations, {found.questions} questions: "
        f"{found.answered} answered, {found.open} open, {found.skipped} skipped, {found.unknown} unknown"
        + (f"; {found.taught} labels taught" if found.taught else "")
    ]
    if found.accuracy is None or found.accuracy_low is None or found.accuracy_high is None:
        lines.append("how often its announcements are right is not known: no question was left to chance")
        lines.append(f"questions cost {found.questions_cost:g}")
    else:
        lines.append(
            f"its announcements are right {found.accuracy:.1%} of the time "
            f"({found.accuracy_low:.1%} to {found.accuracy_high:.1%}, from {found.sample:.0f} questions left to chance)"
        )
        lines.append(
            f"cost {found.cost:.4g}: questions {found.questions_cost:.4g}, errors about {found.errors_cost:.4g}"
        )
    never = "what never asking would have cost is not known before an answer"
    if found.never_asking is not None:
        never = f"never asking about {found.never_asking:.4g}"
    lines.append(f"always asking would have cost {found.always_asking:.4g}, {never}")
    if found.outlook is not None:
        lines += str(found.outlook).splitlines()
    return lines
