"""What records say: statistics, figures and the report; nothing here imports torch."""
