"""What is observed: rows with words and gaps, and texts, as vectors of a fixed width."""

from sparingly.encoders.encoding_errors import EncodingError
from sparingly.encoders.text_encoders import TextEncoder, text_encoder

__all__ = ["EncodingError", "TextEncoder", "text_encoder"]
