"""An expert in one word, as a command line states it."""

from __future__ import annotations

import os
import re

from sparingly.experts.expert import Expert, Person
from sparingly.experts.machine_expert import MachineExpert

FORM = "NAME:PRICE[:gold|:person|:URL]"
GOLD, PERSON, POST = "gold", "person", "post+"


def stated_expert(text: str) -> Expert | MachineExpert | Person:
    """An expert from `NAME:PRICE`, with `:gold` for one who knows, or with `:URL` for one that is called.

    The URL is that of a language model's API, with its model after a `#`; one that begins with `post+` is any endpoint
    that takes and gives JSON. The key, if there is one, is in the variable `SPARINGLY_KEY_NAME`.

    >>> stated_expert("human:1:gold")
    Expert(name='human', price=1.0, gold=True, accuracy=None)
    >>> stated_expert("gpt:0.01:http://127.0.0.1:9/v1#small")
    LanguageModel('gpt', price=0.01)
    >>> stated_expert("gpt::http://127.0.0.1:9/v1")
    Traceback (most recent call last):
    ...
    ValueError: expert 'gpt::http://127.0.0.1:9/v1': the price is missing: say NAME:PRICE[:gold|:person|:URL]
    """
    name, _, rest = text.partition(":")
    price_text, _, what = rest.partition(":")
    try:
        price = float(price_text)
    except ValueError:
        fault = f"the price is {price_text!r}, which is no number" if price_text.strip() else "the price is missing"
        raise ValueError(f"expert {text!r}: {fault}: say {FORM}") from None
    if not what or what == GOLD:
        return Expert(name.strip(), price, gold=what == GOLD)
    if what == PERSON:
        return Person(name.strip(), price)
    if "://" not in what:
        raise ValueError(f"expert {text!r}: {what!r} is neither gold nor person nor a URL: say {FORM}")
    from sparingly.experts.http_experts import HTTPExpert, LanguageModel

    variable = "SPARINGLY_KEY_" + re.sub(r"\W", "_", name.strip()).upper()
    key = variable if os.environ.get(variable) else None
    if what.startswith(POST):
        return HTTPExpert(name.strip(), what.removeprefix(POST), price, key_variable=key)
    url, _, model = what.partition("#")
    return LanguageModel(name.strip(), url, model or "default", price, key_variable=key)
