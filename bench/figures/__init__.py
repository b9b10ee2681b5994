"""The figures of a report, drawn with seaborn and matplotlib."""
