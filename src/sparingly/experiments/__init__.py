"""How strategies are compared: data sets, streams, rounds, records, statistics, figures, a report."""
