"""What is observed: rows with words and missing values, and texts, as vectors of a fixed width."""

from sparingly.encoders.encoding_errors import EncodingError
from sparingly.encoders.learned_schema import learn_columns, learn_schema, stated_schema
from sparingly.encoders.row_schema import RowSchema
from sparingly.encoders.text_encoders import TextEncoder, text_encoder

__all__ = [
    "EncodingError",
    "RowSchema",
    "TextEncoder",
    "learn_columns",
    "learn_schema",
    "stated_schema",
    "text_encoder",
]
