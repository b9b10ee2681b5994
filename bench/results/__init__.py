"""The row: its columns, and the CSV that holds it. Imports neither torch nor pandas."""
